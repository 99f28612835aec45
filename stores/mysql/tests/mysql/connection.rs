//! Connections: lost, refused, and of nobody else's concern.

use mysql_async::prelude::Queryable;
use sendoff::ErrorKind;
use sendoff::store::{EmitStore, MigrateStore, OperateStore, RelayStore};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};

use crate::scratch::{Scratch, connect, message, url};

#[tokio::test]
async fn there_is_nothing_to_listen_to() {
    assert!(Scratch::new().await.store.listen().await.unwrap().is_none());
}

#[tokio::test]
async fn a_wrong_password_is_denied_and_not_repeated() {
    let url = url().replace("open%20sesame", "hunter2");
    let url = if url.contains("hunter2") {
        url
    } else {
        // Another server than the one of `cargo xtask servers`.
        url.split_once('@')
            .map(|(_, rest)| format!("mysql://nobody:hunter2@{rest}"))
            .unwrap()
    };
    let store = MysqlStore::new(MysqlConfig::new(url)).unwrap();
    let error = store.summary().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(!format!("{error} {error:?} {store:?}").contains("hunter2"));
    assert!(error.next().is_some() && !error.is_temporary());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let store = MysqlStore::new(MysqlConfig::new("mysql://a:hunter2@127.0.0.1:1/b")).unwrap();
    let error = store.summary().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.is_temporary() && !format!("{error:?}").contains("hunter2"));
}

/// As after a restart of the server: what was idle is closed.
#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_replaced() {
    // By a database of its own, the test tells its connections from those of others.
    let database = Scratch::bare().await.names.schema().unwrap().to_owned();
    let (server, _) = url()
        .rsplit_once('/')
        .map(|(server, rest)| (server.to_owned(), rest.to_owned()))
        .unwrap();
    let store = MysqlStore::new(MysqlConfig::new(format!("{server}/{database}"))).unwrap();
    store.migrate().await.unwrap();
    let emit = async || {
        let mut tx = store.begin().await.unwrap();
        tx.emit(&[message("a")]).await.unwrap();
        tx.commit().await.unwrap();
    };
    emit().await;
    assert_eq!(store.backlog().await.unwrap().ready, 1);
    let mut conn = connect().await;
    let ours = format!("SELECT id FROM information_schema.processlist WHERE db = '{database}'");
    let before: Vec<u64> = conn.query(ours).await.unwrap();
    assert!(before.len() >= 2, "{before:?}");
    for id in before {
        conn.query_drop(format!("KILL {id}")).await.unwrap();
    }
    assert_eq!(store.backlog().await.unwrap().ready, 1);
    emit().await;
    assert_eq!(store.backlog().await.unwrap().ready, 2);
}
