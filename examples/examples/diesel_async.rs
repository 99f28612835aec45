//! diesel-async: a message inside `connection.transaction(…)`.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;

use anyhow::Result;
use diesel::prelude::*;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::{Context, Handlers};
use sendoff::store::MigrateStore;
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use sendoff::{Message, Outbox};
use serde::{Deserialize, Serialize};

diesel::table! {
    /// The orders.
    orders (id) {
        /// The order number.
        id -> BigInt,
        /// The customer who placed the order.
        customer -> Text,
    }
}

#[derive(Debug, Insertable, Serialize, Deserialize)]
struct Order {
    id: i64,
    customer: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = sendoff_examples::empty_schema("diesel_async").await?;
    let mut connection = AsyncPgConnection::establish(&url).await?;
    connection
        .batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL)")
        .await?;

    // `sendoff migrate` does this once per deployment.
    let store = PostgresStore::new(PostgresConfig::new(&url))?;
    store.migrate().await?;

    // The order and its message are one transaction: if the closure fails, neither exists.
    let outbox = Outbox::new();
    let order = Order {
        id: 42,
        customer: "ada".to_owned(),
    };
    let committed = connection.transaction(async |tx| {
        diesel::insert_into(orders::table).values(&order).execute(tx).await?;
        let placed = Message::json("order.placed", &order)?.key(&order.customer);
        println!("message {}", outbox.emit(tx, placed).await?.id());
        anyhow::Ok(())
    });
    outbox.wake_after(committed).await?;

    // This relay delivers what is due and stops. A service runs one in the background, or uses `sendoff relay`.
    let handlers = Handlers::builder()
        .on("order.*", |order: Order, context: Context| async move {
            println!("{}: {order:?}", context.topic());
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
