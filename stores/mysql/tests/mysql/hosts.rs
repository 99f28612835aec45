//! A URL that names several servers.

use sendoff::ErrorKind;
use sendoff::store::MigrateStore;
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_testkit::servers::MariaDb;

/// One server that takes no writes, and one that follows nobody. Both have the same account. Read-only is for accounts without the
/// right to pass over it, so the first one is only skipped if it is asked.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_hosts_the_first_that_takes_writes_is_used() {
    let (first, second) = tokio::task::block_in_place(|| (MariaDb::start(&[]), MariaDb::start(&[])));
    tokio::task::block_in_place(|| {
        first.sql("CREATE DATABASE shop; SET GLOBAL read_only = 1");
        second.sql("CREATE DATABASE shop");
    });
    let (a, b) = (first.port(), second.port());
    let url = format!("mysql://sendoff:sendoff@127.0.0.1:{a},127.0.0.1:{b}/shop?sslmode=disable");
    let store = MysqlStore::new(MysqlConfig::new(url.clone())).unwrap();
    store.migrate().await.unwrap();
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'shop'";
    tokio::task::block_in_place(|| {
        assert_eq!(first.sql(tables).trim(), "0");
        assert_ne!(second.sql(tables).trim(), "0");
        // The roles change, and the old one is gone.
        second.sql("SET GLOBAL read_only = 1");
    });
    let error = MysqlStore::new(MysqlConfig::new(url.clone())).unwrap();
    let error = error.migrate().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("read-only"), "{error}");
    tokio::task::block_in_place(|| first.sql("SET GLOBAL read_only = 0"));
    drop(second);
    MysqlStore::new(MysqlConfig::new(url)).unwrap().migrate().await.unwrap();
    tokio::task::block_in_place(|| assert_ne!(first.sql(tables).trim(), "0"));
}
