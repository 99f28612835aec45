//! The emit suite, and tests specific to sqlx, on PostgreSQL.
#![cfg(feature = "postgres")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

use std::error::Error as StdError;

use sendoff::emit::{Dialect, Names};
use sendoff::{Emitted, EmittedMany, Message, Outbox, Result};
use sendoff_sqlx as _;
use sendoff_testkit::emit_suite::{self, EmitHarness};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Postgres, Transaction};

sendoff_testkit::emit_suite!(Harness);

const SCHEMA: &str = concat!(
    include_str!("../../../stores/postgres/migrations/0001_outbox.sql"),
    include_str!("../../../stores/postgres/migrations/0001_jobs.sql")
);

struct Harness {
    names: Names,
}

impl EmitHarness for Harness {
    type Tx = Transaction<'static, Postgres>;

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
        pool(&emit_suite::postgres_url()).begin().await.unwrap()
    }

    async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted> {
        outbox.emit(tx, message).await
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
        let mut connection = PgConnection::connect(&emit_suite::postgres_url()).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .unwrap();
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        let mut connection = PgConnection::connect(&emit_suite::postgres_url()).await.unwrap();
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await
            .unwrap()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        matches!(error.downcast_ref(), Some(sqlx::Error::Database(_)))
    }
}

fn pool(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(1).connect_lazy(url).unwrap()
}

fn message() -> Message {
    Message::json("a", &1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn emitting_can_be_spawned() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let pool = pool(&emit_suite::postgres_url());
    let task = tokio::spawn(async move {
        let mut tx = pool.begin().await.unwrap();
        let _ = outbox.emit(&mut tx, message()).await.unwrap();
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
    let (one, other) = (pool(&url), pool(&url));
    for _ in 0..5 {
        for pool in [&one, &other] {
            let mut tx = pool.begin().await.unwrap();
            let _ = outbox.emit(&mut tx, message()).await.unwrap();
            let _ = outbox.emit_many(&mut tx, [message(), message()]).await.unwrap();
            let _ = outbox.emit(&mut tx, message().idempotency_key("k")).await.unwrap();
            // Named statements would collide: every client numbers its own from 1.
            let named = sqlx::query_scalar::<_, String>("SELECT name FROM pg_prepared_statements").persistent(false);
            assert_eq!(named.fetch_all(&mut *tx).await.unwrap(), [""; 0]);
            tx.commit().await.unwrap();
        }
    }
    let topics = harness.names().render("SELECT topic FROM outbox_message");
    assert_eq!(harness.texts(&topics).await.len(), 31);
}

#[tokio::test]
async fn the_statement_is_cached_where_the_applications_own_are() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let mut connection = PgConnection::connect(&emit_suite::postgres_url()).await.unwrap();

    let mut tx = connection.begin().await.unwrap();
    let _ = outbox.emit(&mut tx, message()).await.unwrap();
    assert_eq!(tx.cached_statements_size(), 0);

    sqlx::query("SELECT 1").execute(&mut *tx).await.unwrap();
    for _ in 0..3 {
        let _ = outbox.emit(&mut tx, message()).await.unwrap();
    }
    assert_eq!(tx.cached_statements_size(), 2);
    tx.commit().await.unwrap();
}
