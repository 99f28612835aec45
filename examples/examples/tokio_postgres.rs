//! tokio-postgres: many messages in one statement.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;

use anyhow::Result;
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::{Context, Handlers};
use sendoff::store::MigrateStore;
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use sendoff::{Message, Outbox};
use tokio_postgres::NoTls;

#[tokio::main]
async fn main() -> Result<()> {
    let url = sendoff_examples::empty_schema("tokio_postgres").await?;
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE orders (id int PRIMARY KEY)").await?;

    // `sendoff migrate` does this once per deployment.
    let store = PostgresStore::new(PostgresConfig::new(&url))?;
    store.migrate().await?;

    // Three orders and their messages are one transaction, and the messages are one statement.
    let outbox = Outbox::new();
    let messages = [1, 2, 3].map(|order| Message::json("order.placed", &order).map(|message| message.key("ada")));
    let messages: Vec<Message> = messages.into_iter().collect::<Result<_, _>>()?;
    let tx = client.transaction().await?;
    tx.execute("INSERT INTO orders VALUES (1), (2), (3)", &[]).await?;
    for emitted in outbox.emit_many(&tx, messages).await? {
        println!("message {}", emitted.id());
    }
    outbox.commit(tx).await?;

    // This relay delivers what is due and stops. A service runs one in the background, or uses `sendoff relay`.
    let handlers = Handlers::builder()
        .on("order.*", |order: i32, context: Context| async move {
            println!("{}: order {order}", context.topic());
            Ok(())
        })
        .build()?;
    let relay = Relay::builder(Arc::new(store))
        .sink("mails", Arc::new(handlers))
        .route("order.*".parse()?, ["mails"])
        .build()?;
    let report = relay.run_once(CancellationToken::new()).await?;
    assert_eq!((report.run.delivered, report.run.processed()), (3, 3));
    Ok(())
}
