//! sqlx on SQLite: an outbox in a file, without any server.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use anyhow::Result;
use sendoff::store::MigrateStore;
use sendoff::{Message, Outbox};
use sendoff_relay::Relay;
use sendoff_sink_handlers::{Context, Handlers};
use sendoff_sqlx as _;
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");

    // What `sendoff migrate` does, once a deployment.
    let store = SqliteStore::open(SqliteConfig::new(&file))?;
    store.migrate().await?;

    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await?;
    sqlx::query("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        .execute(&pool)
        .await?;
    let outbox = Outbox::new();

    // The order and the message about it are one transaction.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO orders VALUES (42)").execute(&mut *tx).await?;
    outbox
        .emit(&mut tx, Message::json("order.placed", &42)?.key("ada"))
        .await?;
    tx.commit().await?;

    // Nobody hears of an order that is taken back.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO orders VALUES (43)").execute(&mut *tx).await?;
    outbox
        .emit(&mut tx, Message::json("order.placed", &43)?.key("ada"))
        .await?;
    tx.rollback().await?;

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
