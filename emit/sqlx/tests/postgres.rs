//! The emit suite, and tests specific to sqlx, on PostgreSQL.
#![cfg(feature = "postgres")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod harness;

use sendoff_sqlx as _;
use sendoff_testkit::emit_suite::{message, postgres_url};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgConnection, PgPool};

sendoff_testkit::emit_suite!(Harness on "postgres", spawned);
harness::implement_harness!(Postgres on Postgres, begin, connect);

async fn begin(_: &Harness) -> sqlx::Transaction<'static, sqlx::Postgres> {
    pool(&postgres_url()).begin().await.unwrap()
}

async fn connect(_: &Harness) -> PgConnection {
    PgConnection::connect(&postgres_url()).await.unwrap()
}

fn pool(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(1).connect_lazy(url).unwrap()
}

#[tokio::test]
async fn emitting_works_through_a_pooler_in_transaction_mode() {
    let url = std::env::var("SENDOFF_TEST_PGBOUNCER_URL")
        .expect("SENDOFF_TEST_PGBOUNCER_URL is not set: run the tests with `cargo xtask test`");
    let harness = fresh().await;
    let outbox = harness.outbox();
    let (one, other) = (pool(&url), pool(&url));
    for _ in 0..5 {
        for pool in [&one, &other] {
            let mut tx = pool.begin().await.unwrap();
            let _ = outbox.emit(&mut tx, message("a")).await.unwrap();
            let _ = outbox.emit_many(&mut tx, [message("a"), message("a")]).await.unwrap();
            let _ = outbox.emit(&mut tx, message("a").idempotency_key("k")).await.unwrap();
            // Named statements would collide: every client numbers its own from 1.
            let named = sqlx::query_scalar::<_, String>("SELECT name FROM pg_prepared_statements").persistent(false);
            assert_eq!(named.fetch_all(&mut *tx).await.unwrap(), [""; 0]);
            tx.commit().await.unwrap();
        }
    }
    let topics = harness.sql("SELECT topic FROM outbox_message");
    assert_eq!(harness.texts(&topics).await.len(), 31);
}

#[tokio::test]
async fn the_statement_is_cached_where_the_applications_own_are() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let mut connection = PgConnection::connect(&postgres_url()).await.unwrap();

    let mut tx = connection.begin().await.unwrap();
    let _ = outbox.emit(&mut tx, message("a")).await.unwrap();
    assert_eq!(tx.cached_statements_size(), 0);

    sqlx::query("SELECT 1").execute(&mut *tx).await.unwrap();
    for _ in 0..3 {
        let _ = outbox.emit(&mut tx, message("a")).await.unwrap();
    }
    assert_eq!(tx.cached_statements_size(), 2);
    tx.commit().await.unwrap();
}
