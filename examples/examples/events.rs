//! Domain events: one `order.placed` per order, even if the request is retried; any number of `order.updated`.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "an example prints for its reader, and ends when it is wrong"
)]

use std::sync::Arc;

use anyhow::Result;
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::Handlers;
use sendoff::store::MigrateStore;
use sendoff::stores::sqlite::{SqliteConfig, SqliteStore};
use sendoff::{Emitted, ErrorKind, Event, OnDuplicate, Outbox, Outgoing};
use serde::Serialize;
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::sync::mpsc;

#[derive(Serialize)]
struct Updated {
    status: &'static str,
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shop.db");
    let store = SqliteStore::new(SqliteConfig::new(&file))?;
    store.migrate().await?;
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await?;
    let outbox = Outbox::new();

    // The key of an event, for ordering and deduplication, is its aggregate: here `order:42`.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    let first = outbox.emit(&mut tx, Event::new("order", 42, "order.placed")).await?;
    tx.commit().await?;

    // The same request again is an error: nobody chose the key, so nobody would look for a report. The transaction is still
    // usable.
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    let again = outbox.emit(&mut tx, Event::new("order", 42, "order.placed")).await;
    let error = again.expect_err("the order was placed before");
    assert_eq!(error.kind(), ErrorKind::Duplicate);
    println!("{error}");

    // A program that expects the repetition asks for a report.
    let again = Event::new("order", 42, "order.placed").on_duplicate(OnDuplicate::Report);
    let again = outbox.emit(&mut tx, again).await?;
    assert_eq!(again, Emitted::Duplicate { first: first.id() });

    // Events that may happen more than once are marked `repeatable`. They keep the order of their aggregate.
    for status in ["packed", "shipped"] {
        let updated = Event::new("order", 42, "order.updated")
            .payload(&Updated { status })?
            .schema_version(2);
        let _ = outbox.emit(&mut tx, updated.repeatable()).await?;
    }
    tx.commit().await?;

    let (handled, mut events) = mpsc::unbounded_channel();
    let handlers = Handlers::builder()
        .on_raw("order.*", move |outgoing: Arc<Outgoing>| {
            let event = format!("{} {}", outgoing.topic, String::from_utf8_lossy(&outgoing.payload));
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
