//! Plain SQL: what a service in any language does inside its own transaction.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::sync::Arc;

use anyhow::Result;
use sendoff::store::MigrateStore;
use sendoff::{Delivery, Uuid};
use sendoff_relay::Relay;
use sendoff_sink_handlers::Handlers;
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use tokio_postgres::NoTls;
use tokio_util::sync::CancellationToken;

const PLACE_ORDER: &str = r#"
    BEGIN;
    INSERT INTO orders (id) VALUES (42);
    -- A function for a payload in JSON, and one for bytes; they return the id of the message.
    SELECT outbox_emit_json('order.placed', '{"id": 42}', key => 'ada');
    SELECT outbox_emit('order.label', '\x255044462d', content_type => 'application/pdf', headers => '{"tenant": "acme"}');
    -- Or an INSERT, which needs no other right.
    INSERT INTO outbox_message (topic, key, payload) VALUES ('order.paid', 'ada', convert_to('{"id": 42}', 'UTF8'));
    COMMIT;
"#;

/// Emits once, however often it is called; returns the id of the first message.
const INVOICE: &str = r#"SELECT outbox_emit_json('invoice.due', '{"id": 7}', idempotency_key => 'invoice-7')"#;

#[tokio::main]
async fn main() -> Result<()> {
    let url = sendoff_examples::empty_schema("plain_sql").await?;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE orders (id int PRIMARY KEY)").await?;
    let store = PostgresStore::new(PostgresConfig::new(&url))?;
    store.migrate().await?;

    client.batch_execute(PLACE_ORDER).await?;
    let first: Uuid = client.query_one(INVOICE, &[]).await?.get(0);
    let again: Uuid = client.query_one(INVOICE, &[]).await?.get(0);
    assert_eq!(first, again);

    let handlers = Handlers::builder()
        .on_raw("*", |delivery: Arc<Delivery>| async move {
            println!("{}: {} bytes", delivery.topic, delivery.payload.len());
            Ok(())
        })
        .build()?;
    let relay = Relay::builder(Arc::new(store))
        .sink("log", Arc::new(handlers))
        .route("*".parse()?, ["log"])
        .build()?;
    let report = relay.run_once(CancellationToken::new()).await?;
    assert_eq!((report.run.delivered, report.run.processed()), (4, 4));
    Ok(())
}
