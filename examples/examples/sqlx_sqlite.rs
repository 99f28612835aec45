//! sqlx on SQLite: an outbox in a file, without a server.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;

use anyhow::Result;
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::{Context, Handlers};
use sendoff::store::MigrateStore;
use sendoff::stores::sqlite::{SqliteConfig, SqliteStore};
use sendoff::{Message, Outbox};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");

    // `sendoff migrate` does this once per deployment.
    let store = SqliteStore::new(SqliteConfig::new(&file))?;
    store.migrate().await?;

    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await?;
    sqlx::query("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        .execute(&pool)
        .await?;
    let outbox = Outbox::new();

    // The order and its message are one transaction.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO orders VALUES (42)").execute(&mut *tx).await?;
    let placed = Message::json("order.placed", &42)?.key("ada");
    println!("message {}", outbox.emit(&mut tx, placed).await?.id());
    tx.commit().await?;

    // After a rollback no message is delivered.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO orders VALUES (43)").execute(&mut *tx).await?;
    let placed = Message::json("order.placed", &43)?.key("ada");
    println!("message {}", outbox.emit(&mut tx, placed).await?.id());
    tx.rollback().await?;

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
