//! Plain SQL: how a service in any language emits inside its own transaction.
#![allow(clippy::print_stdout, reason = "an example prints for its reader")]

use std::sync::Arc;

use anyhow::Result;
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::Handlers;
use sendoff::store::MigrateStore;
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use sendoff::{Outgoing, Uuid};
use tokio_postgres::NoTls;

const PLACE_ORDER: &str = r#"
    BEGIN;
    INSERT INTO orders (id) VALUES (42);
    -- One function is for JSON payloads and one for bytes. They return the id of the message.
    SELECT outbox_emit_json('order.placed', '{"id": 42}', key => 'ada');
    SELECT outbox_emit('order.label', '\x255044462d', content_type => 'application/pdf', headers => '{"tenant": "acme"}');
    -- A plain INSERT needs no other privilege.
    INSERT INTO outbox_message (topic, key, payload) VALUES ('order.paid', 'ada', convert_to('{"id": 42}', 'UTF8'));
    COMMIT;
"#;

/// Emits once, even if it is called several times. Returns the id of the first message.
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
        .on_raw("*", |outgoing: Arc<Outgoing>| async move {
            println!("{}: {} bytes", outgoing.topic, outgoing.payload.len());
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
