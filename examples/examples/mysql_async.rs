//! mysql_async, on MySQL or MariaDB: a message that is emitted twice is sent once.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;

use anyhow::Result;
use mysql_async::prelude::Queryable;
use mysql_async::{Pool, TxOpts};
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::{Context, Handlers};
use sendoff::store::MigrateStore;
use sendoff::stores::mysql::{MysqlConfig, MysqlStore};
use sendoff::{Message, Outbox};

#[tokio::main]
async fn main() -> Result<()> {
    let url = sendoff_examples::empty_mysql_database("mysql_async").await?;
    let pool = Pool::from_url(&url)?;
    let mut conn = pool.get_conn().await?;
    conn.query_drop("CREATE TABLE orders (id INT PRIMARY KEY)").await?;

    // `sendoff migrate` does this once per deployment.
    let store = MysqlStore::new(MysqlConfig::new(&url))?;
    store.migrate().await?;

    // The order and its message are one transaction. A repeated request finds the first message.
    let outbox = Outbox::new();
    for again in [false, true] {
        let mut tx = conn.start_transaction(TxOpts::new()).await?;
        tx.query_drop("INSERT IGNORE INTO orders VALUES (42)").await?;
        let placed = Message::json("order.placed", &42)?
            .key("ada")
            .idempotency_key("order 42");
        assert_eq!(outbox.emit(&mut tx, placed).await?.is_duplicate(), again);
        outbox.commit(tx).await?;
    }

    // This relay delivers what is due and stops. A service runs one in the background, or uses `sendoff relay`.
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
