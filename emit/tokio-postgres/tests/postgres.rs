//! The emit suite, and tests specific to tokio-postgres.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod round_trips;

use std::error::Error as StdError;

use round_trips::RoundTrips;
use sendoff::emit::{Dialect, Names};
use sendoff::{Emitted, EmittedMany, Message, Outbox, Result};
use sendoff_testkit::emit_suite::{self, EmitHarness};
use sendoff_tokio_postgres as _;
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, Transaction};

sendoff_testkit::emit_suite!(Harness);

const SCHEMA: &str = concat!(
    include_str!("../../../stores/postgres/migrations/0001_outbox.sql"),
    include_str!("../../../stores/postgres/migrations/0001_jobs.sql")
);

struct Harness {
    names: Names,
}

impl EmitHarness for Harness {
    type Tx = Transaction<'static>;

    const DIALECT: Dialect = Dialect::Postgres;

    async fn fresh() -> Self {
        let names = emit_suite::fresh_names();
        let harness = Self { names };
        let create = format!("CREATE SCHEMA {};", harness.names.schema().unwrap());
        harness.execute(&(create + &harness.names.render(SCHEMA))).await;
        harness
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn begin(&self) -> Self::Tx {
        // Leaked: the transaction borrows its client, and a test's process is short.
        let client: &'static mut Client = Box::leak(Box::new(connect(&emit_suite::postgres_url()).await));
        client.transaction().await.unwrap()
    }

    async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted> {
        outbox.emit(&*tx, message).await
    }

    async fn emit_many(&self, outbox: &Outbox, tx: &mut Self::Tx, messages: Vec<Message>) -> Result<EmittedMany> {
        outbox.emit_many(tx, messages).await
    }

    async fn commit(&self, tx: Self::Tx) {
        tx.commit().await.unwrap();
    }

    async fn rollback(&self, tx: Self::Tx) {
        tx.rollback().await.unwrap();
    }

    async fn execute(&self, sql: &str) {
        let client = connect(&emit_suite::postgres_url()).await;
        client.batch_execute(sql).await.unwrap();
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        let client = connect(&emit_suite::postgres_url()).await;
        let answer = client.simple_query(sql).await.unwrap();
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        answer.iter().filter_map(row).collect()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        error
            .downcast_ref::<tokio_postgres::Error>()
            .is_some_and(|error| error.code().is_some())
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn message() -> Message {
    Message::json("a", &1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn emitting_can_be_spawned() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let mut client = connect(&emit_suite::postgres_url()).await;
    let task = tokio::spawn(async move {
        let mut tx = client.transaction().await.unwrap();
        let _ = outbox.emit(&tx, message()).await.unwrap();
        let _ = outbox.emit_many(&mut tx, [message(), message()]).await.unwrap();
        tx.commit().await.unwrap();
    });
    task.await.unwrap();
    let topics = harness.names().render("SELECT topic FROM outbox_message");
    assert_eq!(harness.texts(&topics).await, ["a"; 3]);
}

#[tokio::test]
async fn emitting_works_through_a_pooler_in_transaction_mode() {
    let url = std::env::var("SENDOFF_TEST_PGBOUNCER_URL")
        .expect("SENDOFF_TEST_PGBOUNCER_URL is not set: run the tests with `cargo xtask test`");
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let (mut one, mut other) = (connect(&url).await, connect(&url).await);
    for _ in 0..5 {
        for client in [&mut one, &mut other] {
            let tx = client.transaction().await.unwrap();
            let _ = outbox.emit(&tx, message()).await.unwrap();
            let _ = outbox.emit_many(&tx, [message(), message()]).await.unwrap();
            let _ = outbox.emit(&tx, message().idempotency_key("k")).await.unwrap();
            let named = tx.query_typed("SELECT FROM pg_prepared_statements", &[]).await.unwrap();
            assert!(named.is_empty());
            tx.commit().await.unwrap();
        }
    }
    let topics = harness.names().render("SELECT topic FROM outbox_message");
    assert_eq!(harness.texts(&topics).await.len(), 31);
}

#[tokio::test]
async fn every_emit_is_one_round_trip() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let config: tokio_postgres::Config = emit_suite::postgres_url().parse().unwrap();
    let tokio_postgres::config::Host::Tcp(host) = &config.get_hosts()[0] else {
        panic!("the test server must be reached by TCP");
    };
    let socket = TcpStream::connect((host.as_str(), config.get_ports()[0]))
        .await
        .unwrap();
    let (socket, trips) = RoundTrips::count(socket);
    let (mut client, connection) = config.connect_raw(socket, NoTls).await.unwrap();
    tokio::spawn(connection);

    let tx = client.transaction().await.unwrap();
    let messages = || vec![message(); 2];
    let once = || vec![message().idempotency_key("k"); 2];
    for messages in [vec![message()], messages(), once(), vec![message()], messages(), once()] {
        let before = trips.get();
        let _ = outbox.emit_many(&tx, messages).await.unwrap();
        assert_eq!(trips.get() - before, 1);
    }
}
