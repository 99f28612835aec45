//! Decimals, dates, times and UUIDs of an application go through a real store and a relay to a handler, byte for byte and as
//! values. Bytes that are no JSON pass unchanged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp, Zoned};
use rust_decimal::Decimal;
use sendoff::emit::Names;
use sendoff::relay::{CancellationToken, Relay};
use sendoff::sinks::handlers::{Context, Handlers};
use sendoff::store::{EmitStore, MigrateStore, RelayStore};
use sendoff::stores::mysql::{MysqlConfig, MysqlStore};
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use sendoff::stores::sqlite::{SqliteConfig, SqliteStore};
use sendoff::{Event, Message, Outgoing, Uuid};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Invoice {
    id: Uuid,
    total: Decimal,
    rates: Vec<Decimal>,
    at: Timestamp,
    local: Zoned,
    booked: DateTime,
    due: Date,
    opens: Time,
    grace: SignedDuration,
    note: Option<String>,
}

fn invoice() -> Invoice {
    Invoice {
        id: Uuid::now_v7(),
        // A trailing zero, the largest value, the smallest fraction: floats would lose each.
        total: "12.50".parse().unwrap(),
        rates: vec![
            Decimal::MAX,
            Decimal::MIN,
            "0.0000000000000000000000000001".parse().unwrap(),
        ],
        at: "2026-03-29T00:59:59.999999999Z".parse().unwrap(),
        local: "2026-10-25T02:30:00+01:00[+01:00]".parse().unwrap(),
        booked: "-009999-01-01T00:00:00.000000001".parse().unwrap(),
        due: "2028-02-29".parse().unwrap(),
        opens: "23:59:59.5".parse().unwrap(),
        grace: SignedDuration::new(-3, -7),
        note: Some("žluť 🦀 \u{0} \u{2028}".to_owned()),
    }
}

/// Emits with the store, delivers with a relay, and compares.
async fn round_trip<S: EmitStore + MigrateStore + RelayStore>(store: S) {
    store.migrate().await.unwrap();
    let sent = invoice();
    let typed = Message::from(Event::new("invoice", sent.id, "invoice.issued").payload(&sent).unwrap());
    let garbled = vec![0xff, 0x00, b'{', 0xed, 0xa0, 0x80, b'\\', b'x'];
    let raw = Message::bytes("scan.stored", "application/x-unknown", garbled.clone());
    let json = typed.payload().clone();
    let mut tx = store.begin().await.unwrap();
    tx.emit(&[typed, raw]).await.unwrap();
    tx.commit().await.unwrap();

    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let raws = arrived.clone();
    let handlers = Handlers::builder()
        .on("invoice.*", move |invoice: Invoice, context: Context| {
            let sent = arrived.send((Some(invoice), context.outgoing().payload.clone()));
            async move { Ok(sent?) }
        })
        .on_raw("*", move |outgoing: Arc<Outgoing>| {
            let sent = raws.send((None, outgoing.payload.clone()));
            async move { Ok(sent?) }
        })
        .build()
        .unwrap();
    let relay = Relay::builder(Arc::new(store))
        .sink("handlers", Arc::new(handlers))
        .route("*".parse().unwrap(), ["handlers"])
        .build()
        .unwrap();
    let report = relay.run_once(CancellationToken::new()).await.unwrap();
    assert_eq!((report.run.delivered, report.run.processed()), (2, 2));
    let mut arrived = [arrivals.recv().await.unwrap(), arrivals.recv().await.unwrap()];
    arrived.sort_by_key(|(invoice, _)| invoice.is_none());
    assert_eq!(arrived[0], (Some(sent), json));
    assert_eq!(arrived[1], (None, garbled.into()));
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run the tests with `cargo xtask test`"))
}

#[tokio::test]
async fn decimals_dates_and_uuids_survive_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let config = SqliteConfig::new(folder.path().join("shop.db"));
    round_trip(SqliteStore::new(config).unwrap()).await;
}

#[tokio::test]
async fn decimals_dates_and_uuids_survive_postgres() {
    let url = env("SENDOFF_TEST_POSTGRES_URL");
    let schema = format!("payloads_{}", &Uuid::new_v4().simple().to_string()[..16]);
    let names = Names::new(Some(&schema), Names::PREFIX).unwrap();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE SCHEMA {schema}")).await.unwrap();
    round_trip(PostgresStore::new(PostgresConfig::new(url).names(names)).unwrap()).await;
}

#[tokio::test]
async fn decimals_dates_and_uuids_survive_mysql() {
    let url = env("SENDOFF_TEST_MYSQL_URL");
    let (server, _) = url.rsplit_once('/').unwrap();
    let database = format!("payloads_{}", &Uuid::new_v4().simple().to_string()[..16]);
    let mut conn = mysql_async::Conn::from_url(&url).await.unwrap();
    let create = format!("CREATE DATABASE {database}");
    mysql_async::prelude::Queryable::query_drop(&mut conn, create)
        .await
        .unwrap();
    conn.disconnect().await.unwrap();
    round_trip(MysqlStore::new(MysqlConfig::new(format!("{server}/{database}"))).unwrap()).await;
}
