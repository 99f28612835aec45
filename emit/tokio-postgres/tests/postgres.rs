//! The emit suite, and tests specific to tokio-postgres.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod round_trips;

use std::error::Error as StdError;

use futures::FutureExt;
use round_trips::RoundTrips;
use sendoff::emit::Dialect;
use sendoff::{Emitted, EmittedMany, Inbox, Message, Once, Outbox, Result, Uuid};
use sendoff_testkit::emit_suite::{self, EmitHarness, message};
use sendoff_tokio_postgres as _;
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, Transaction};

sendoff_testkit::emit_suite!(Harness on "postgres", spawned);

impl EmitHarness for Harness {
    type Tx = Transaction<'static>;

    const DIALECT: Dialect = Dialect::Postgres;

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

    async fn once(&self, inbox: &Inbox, tx: &mut Self::Tx, id: Uuid, consumer: &str) -> Result<Once> {
        inbox.once(&*tx, id, consumer).await
    }

    async fn commit_by(&self, outbox: &Outbox, tx: Self::Tx) {
        outbox.commit(tx).await.unwrap();
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

#[tokio::test]
async fn emitting_works_through_a_pooler_in_transaction_mode() {
    let url = std::env::var("SENDOFF_TEST_PGBOUNCER_URL")
        .expect("SENDOFF_TEST_PGBOUNCER_URL is not set: run the tests with `cargo xtask test`");
    let harness = fresh().await;
    let outbox = harness.outbox();
    let (mut one, mut other) = (connect(&url).await, connect(&url).await);
    for _ in 0..5 {
        for client in [&mut one, &mut other] {
            let tx = client.transaction().await.unwrap();
            let _ = outbox.emit(&tx, message("a")).await.unwrap();
            let _ = outbox.emit_many(&tx, [message("a"), message("a")]).await.unwrap();
            let _ = outbox.emit(&tx, message("a").idempotency_key("k")).await.unwrap();
            let named = tx.query_typed("SELECT FROM pg_prepared_statements", &[]).await.unwrap();
            assert!(named.is_empty());
            tx.commit().await.unwrap();
        }
    }
    let topics = harness.sql("SELECT topic FROM outbox_message");
    assert_eq!(harness.texts(&topics).await.len(), 31);
}

#[tokio::test]
async fn every_emit_is_one_round_trip() {
    let harness = fresh().await;
    let outbox = harness.outbox();
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
    let messages = || vec![message("a"); 2];
    let once = || vec![message("a").idempotency_key("k"); 2];
    for messages in [
        vec![message("a")],
        messages(),
        once(),
        vec![message("a")],
        messages(),
        once(),
    ] {
        let before = trips.get();
        let _ = outbox.emit_many(&tx, messages).await.unwrap();
        assert_eq!(trips.get() - before, 1);
    }
}

#[tokio::test]
async fn a_commit_that_fails_is_the_drivers_error_and_wakes_nobody() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let checked = "ALTER TABLE outbox_dedup ADD CONSTRAINT unique_topic UNIQUE (topic) DEFERRABLE INITIALLY DEFERRED";
    harness.execute(&harness.sql(checked)).await;
    let mut client = connect(&emit_suite::postgres_url()).await;
    let tx = client.transaction().await.unwrap();
    for key in ["one", "two"] {
        let _ = outbox.emit(&tx, message("a").idempotency_key(key)).await.unwrap();
    }
    let error = outbox.commit(tx).await.unwrap_err();
    assert_eq!(error.code(), Some(&tokio_postgres::error::SqlState::UNIQUE_VIOLATION));
    assert!(outbox.waker().woken().now_or_never().is_none());
}
