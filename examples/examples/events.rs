//! Domain events: one `order.placed` an order, however often the request is retried; any number of `order.updated`.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use anyhow::Result;
use sendoff::store::MigrateStore;
use sendoff::{Delivery, Emitted, Event, Outbox};
use sendoff_relay::Relay;
use sendoff_sink_handlers::Handlers;
use sendoff_sqlx as _;
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
use serde::Serialize;
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[derive(Serialize)]
struct Updated {
    status: &'static str,
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    let store = SqliteStore::open(SqliteConfig::new(&file))?;
    store.migrate().await?;
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await?;
    let outbox = Outbox::new();

    // The key of an event, for order and against duplicates, is its aggregate: here `order:42`.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    let first = outbox.emit(&mut tx, Event::new("order", 42, "order.placed")).await?;
    tx.commit().await?;

    // The same request again: nothing is stored, and the first message is named.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    let again = outbox.emit(&mut tx, Event::new("order", 42, "order.placed")).await?;
    assert_eq!(again, Emitted::Duplicate { first: first.id() });

    // Events that may happen more than once say so. They keep the order of their aggregate.
    for status in ["packed", "shipped"] {
        let updated = Event::new("order", 42, "order.updated")
            .payload(&Updated { status })?
            .schema_version(2);
        outbox.emit(&mut tx, updated.repeatable()).await?;
    }
    tx.commit().await?;

    let (handled, mut events) = mpsc::unbounded_channel();
    let handlers = Handlers::builder()
        .on_raw("order.*", move |delivery: Arc<Delivery>| {
            let event = format!("{} {}", delivery.topic, String::from_utf8_lossy(&delivery.payload));
            println!("{event}");
            let handled = handled.clone();
            async move { Ok(handled.send(event)?) }
        })
        .build()?;
    let relay = Relay::builder(Arc::new(store))
        .sink("log", Arc::new(handlers))
        .route("order.*".parse()?, ["log"])
        .build()?;
    let report = relay.run_once(CancellationToken::new()).await?;
    assert_eq!((report.run.delivered, report.run.processed()), (3, 3));
    for expected in [
        r#"order.placed {}"#,
        r#"order.updated {"status":"packed"}"#,
        r#"order.updated {"status":"shipped"}"#,
    ] {
        assert_eq!(events.recv().await.as_deref(), Some(expected));
    }
    Ok(())
}
