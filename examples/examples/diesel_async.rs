//! diesel-async: a message inside `connection.transaction(…)`.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use anyhow::Result;
use diesel::prelude::*;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use sendoff::store::MigrateStore;
use sendoff::{Message, Outbox};
use sendoff_diesel_async as _;
use sendoff_relay::Relay;
use sendoff_sink_handlers::{Context, Handlers};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

diesel::table! {
    /// The orders.
    orders (id) {
        /// Their numbers.
        id -> BigInt,
        /// Who placed them.
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

    // What `sendoff migrate` does, once a deployment.
    let store = PostgresStore::new(PostgresConfig::new(&url))?;
    store.migrate().await?;

    // The order and the message about it are one transaction: when the closure fails, neither is there.
    let outbox = Outbox::new();
    let order = Order {
        id: 42,
        customer: "ada".to_owned(),
    };
    connection
        .transaction(async |tx| {
            diesel::insert_into(orders::table).values(&order).execute(tx).await?;
            outbox
                .emit(tx, Message::json("order.placed", &order)?.key(&order.customer))
                .await?;
            anyhow::Ok(())
        })
        .await?;

    // A relay that delivers what there is, and stops. A service runs one in the background, or `sendoff relay`.
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
