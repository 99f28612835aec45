//! A worker: the application runs jobs itself. A failed job is retried.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use sendoff::store::{Job, MigrateStore, WorkStore};
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use sendoff::worker::{CancellationToken, Failure, Worker};
use sendoff::{Message, Outbox};
use tokio_postgres::NoTls;

/// Prints an invoice. The first attempt finds an empty tray.
async fn print(job: Arc<Job>) -> Result<(), Failure> {
    let invoice: u32 = serde_json::from_slice(&job.payload).map_err(Failure::permanent)?;
    if job.attempt == 1 {
        return Err(Failure::retry_in(Duration::from_millis(10), "no paper"));
    }
    println!("invoice {invoice} printed at attempt {}", job.attempt);
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

    // `sendoff migrate` does this once per deployment.
    let store = Arc::new(PostgresStore::new(PostgresConfig::new(&url))?);
    store.migrate().await?;

    // The invoices and their jobs are one transaction.
    let jobs = Outbox::builder().jobs().build();
    let tx = client.transaction().await?;
    tx.execute("INSERT INTO invoices VALUES (1), (2)", &[]).await?;
    for invoice in [1, 2] {
        let job = Message::json("invoice.print", &invoice)?;
        println!("job {}", jobs.emit(&tx, job).await?.id());
    }
    tx.commit().await?;

    // You can run any number of workers on any number of hosts. This one stops when no job is left.
    let stop = CancellationToken::new();
    let worker = Worker::new(store.clone())
        .named("printer-1")
        .waker(jobs.waker().clone());
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { worker.run(print, stop).await }
    });
    while store.job_counts().await?.total() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    let report = running.await??;
    assert_eq!((report.completed, report.retried), (2, 2));
    Ok(())
}
