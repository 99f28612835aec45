//! rusqlite: blocking code that emits into a file, without a server.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;

use anyhow::Result;
use rusqlite::{Connection, TransactionBehavior};
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::{Context, Handlers};
use sendoff::store::MigrateStore;
use sendoff::stores::sqlite::{SqliteConfig, SqliteStore};
use sendoff::{Message, Outbox};

/// The order and its message are one transaction.
fn place_order(connection: &mut Connection, outbox: &Outbox, order: i64) -> Result<()> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute("INSERT INTO orders VALUES (?1)", [order])?;
    let placed = Message::json("order.placed", &order)?.key("ada");
    println!("message {}", outbox.emit_blocking(&tx, placed)?.id());
    outbox.commit_blocking(tx)?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");

    // `sendoff migrate` does this once per deployment.
    let store = SqliteStore::new(SqliteConfig::new(&file))?;
    store.migrate().await?;

    let mut connection = Connection::open(&file)?;
    connection.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY)")?;
    place_order(&mut connection, &Outbox::new(), 42)?;

    // This relay delivers what is due and stops. A service runs one in the background, or uses `sendoff relay`.
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
