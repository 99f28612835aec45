//! The emit suite, and tests specific to sqlx, on SQLite.
#![cfg(feature = "sqlite")]
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
use sendoff_testkit::emit_suite::EmitHarness;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Sqlite, SqlitePool, Transaction};
use tempfile::TempDir;

sendoff_testkit::emit_suite!(Harness);

const SCHEMA: &str = concat!(
    include_str!("../../../stores/sqlite/migrations/0001_outbox.sql"),
    include_str!("../../../stores/sqlite/migrations/0001_jobs.sql")
);

struct Harness {
    names: Names,
    folder: TempDir,
}

impl Harness {
    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(self.folder.path().join("shop.db"))
            .create_if_missing(true)
    }

    fn pool(&self) -> SqlitePool {
        SqlitePoolOptions::new()
            .max_connections(1)
            .connect_lazy_with(self.options())
    }
}

impl EmitHarness for Harness {
    type Tx = Transaction<'static, Sqlite>;

    const DIALECT: Dialect = Dialect::Sqlite;

    async fn fresh() -> Self {
        let harness = Self {
            names: Names::new(None, "shop_outbox_").unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        harness.execute(&harness.names.render(SCHEMA)).await;
        harness
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn begin(&self) -> Self::Tx {
        self.pool().begin_with("BEGIN IMMEDIATE").await.unwrap()
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
        let mut connection = self.options().connect().await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .unwrap();
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        let mut connection = self.options().connect().await.unwrap();
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await
            .unwrap()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        matches!(error.downcast_ref(), Some(sqlx::Error::Database(_)))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn emitting_can_be_spawned() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let pool = harness.pool();
    let message = || Message::json("a", &1).unwrap();
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
