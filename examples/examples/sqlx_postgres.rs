//! sqlx on PostgreSQL, with the relay inside the service: it delivers milliseconds after the commit.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;

use anyhow::Result;
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::{Context, Handlers};
use sendoff::store::MigrateStore;
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use sendoff::{Message, Outbox};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tokio::sync::mpsc;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: i64,
    customer: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = sendoff_examples::empty_schema("sqlx_postgres").await?;
    let pool = PgPool::connect(&url).await?;
    sqlx::query("CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL)")
        .execute(&pool)
        .await?;

    // `sendoff migrate` does this once per deployment.
    let store = PostgresStore::new(PostgresConfig::new(&url))?;
    store.migrate().await?;

    // The relay, in the background.
    let outbox = Outbox::new();
    let (handled, mut orders) = mpsc::unbounded_channel();
    let handlers = Handlers::builder()
        .on("order.*", move |order: Order, context: Context| {
            println!("message {} arrived: {order:?}", context.id());
            let handled = handled.clone();
            async move { Ok(handled.send(order)?) }
        })
        .build()?;
    let relay = Relay::builder(Arc::new(store))
        .sink("mails", Arc::new(handlers))
        .route("order.*".parse()?, ["mails"])
        .waker(outbox.waker().clone())
        .build()?;
    let stop = CancellationToken::new();
    let relay = tokio::spawn(relay.run(stop.clone()));

    // The service: its row and the message are one transaction.
    let order = Order {
        id: 42,
        customer: "ada".to_owned(),
    };
    let mut tx = pool.begin().await?;
    sqlx::query("INSERT INTO orders VALUES ($1, $2)")
        .bind(order.id)
        .bind(&order.customer)
        .execute(&mut *tx)
        .await?;
    let placed = Message::json("order.placed", &order)?.key(&order.customer);
    println!("message {}", outbox.emit(&mut tx, placed).await?.id());
    outbox.commit(tx).await?;

    assert_eq!(orders.recv().await, Some(order));
    stop.cancel();
    let report = relay.await??;
    assert_eq!((report.delivered, report.processed()), (1, 1));
    Ok(())
}
