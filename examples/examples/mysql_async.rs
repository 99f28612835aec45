//! mysql_async, on MySQL or MariaDB: what may be emitted twice is sent once.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use anyhow::Result;
use mysql_async::prelude::Queryable;
use mysql_async::{Pool, TxOpts};
use sendoff::store::MigrateStore;
use sendoff::{Message, Outbox};
use sendoff_mysql_async as _;
use sendoff_relay::Relay;
use sendoff_sink_handlers::{Context, Handlers};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<()> {
    let url = sendoff_examples::empty_mysql_database("mysql_async").await?;
    let pool = Pool::from_url(&url)?;
    let mut conn = pool.get_conn().await?;
    conn.query_drop("CREATE TABLE orders (id INT PRIMARY KEY)").await?;

    // What `sendoff migrate` does, once a deployment.
    let store = MysqlStore::new(MysqlConfig::new(&url))?;
    store.migrate().await?;

    // The order and the message about it are one transaction. A request that comes again finds the first message.
    let outbox = Outbox::new();
    for again in [false, true] {
        let mut tx = conn.start_transaction(TxOpts::new()).await?;
        tx.query_drop("INSERT IGNORE INTO orders VALUES (42)").await?;
        let placed = Message::json("order.placed", &42)?
            .key("ada")
            .idempotency_key("order 42");
        assert_eq!(outbox.emit(&mut tx, placed).await?.is_duplicate(), again);
        tx.commit().await?;
    }

    // A relay that delivers what there is, and stops. A service runs one in the background, or `sendoff relay`.
    let handlers = Handlers::builder()
        .on("order.*", |order: i32, context: Context| async move {
            println!("{}: order {order}", context.topic());
            Ok(())
        })
        .build()?;
    let relay = Relay::builder(Arc::new(store))
        .sink("mails", Arc::new(handlers))
        .route("order.*".parse()?, ["mails"])
        .build()?;
    let report = relay.run_once(CancellationToken::new()).await?;
    assert_eq!((report.run.delivered, report.run.processed()), (1, 1));
    drop(conn);
    pool.disconnect().await?;
    Ok(())
}
