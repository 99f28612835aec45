//! A worker: the application does the work itself, item by item. One that fails is tried again.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use sendoff::store::{Item, MigrateStore, WorkStore};
use sendoff::{Message, Outbox};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use sendoff_tokio_postgres as _;
use sendoff_worker::{Failure, Worker};
use tokio_postgres::NoTls;
use tokio_util::sync::CancellationToken;

/// Prints an invoice. The first attempt meets an empty tray.
async fn print(item: Arc<Item>) -> Result<(), Failure> {
    let invoice: u32 = serde_json::from_slice(&item.payload).map_err(Failure::permanent)?;
    if item.attempt == 1 {
        return Err(Failure::retry_in(Duration::from_millis(10), "no paper"));
    }
    println!("invoice {invoice} is printed at attempt {}", item.attempt);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = sendoff_examples::empty_schema("worker").await?;
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client
        .batch_execute("CREATE TABLE invoices (id int PRIMARY KEY)")
        .await?;

    // What `sendoff migrate` does, once a deployment.
    let store = Arc::new(PostgresStore::new(PostgresConfig::new(&url))?);
    store.migrate().await?;

    // The invoices and the work on them are one transaction.
    let items = Outbox::builder().items().build();
    let tx = client.transaction().await?;
    tx.execute("INSERT INTO invoices VALUES (1), (2)", &[]).await?;
    for invoice in [1, 2] {
        items.emit(&tx, Message::json("invoice.print", &invoice)?).await?;
    }
    tx.commit().await?;

    // As many workers as you like, on as many hosts as you like. This one stops when there is nothing left.
    let stop = CancellationToken::new();
    let worker = Worker::new(store.clone())
        .named("printer-1")
        .waker(items.waker().clone());
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { worker.run(print, stop).await }
    });
    while store.item_counts().await?.total() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    let report = running.await??;
    assert_eq!((report.completed, report.retried), (2, 2));
    Ok(())
}
