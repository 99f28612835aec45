//! rusqlite: blocking code that emits, in a file without any server.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use anyhow::Result;
use rusqlite::{Connection, TransactionBehavior};
use sendoff::store::MigrateStore;
use sendoff::{Message, Outbox};
use sendoff_relay::Relay;
use sendoff_rusqlite as _;
use sendoff_sink_handlers::{Context, Handlers};
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
use tokio_util::sync::CancellationToken;

/// The order and the message about it are one transaction.
fn place_order(connection: &mut Connection, outbox: &Outbox, order: i64) -> Result<()> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute("INSERT INTO orders VALUES (?1)", [order])?;
    outbox.emit_blocking(&tx, Message::json("order.placed", &order)?.key("ada"))?;
    tx.commit()?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");

    // What `sendoff migrate` does, once a deployment.
    let store = SqliteStore::open(SqliteConfig::new(&file))?;
    store.migrate().await?;

    let mut connection = Connection::open(&file)?;
    connection.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY)")?;
    place_order(&mut connection, &Outbox::new(), 42)?;

    // A relay that delivers what there is, and stops. A service runs one in the background, or `sendoff relay`.
    let handlers = Handlers::builder()
        .on("order.*", |order: i64, context: Context| async move {
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
    Ok(())
}
