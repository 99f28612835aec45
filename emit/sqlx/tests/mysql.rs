//! The emit suite, and tests specific to sqlx, on MySQL and MariaDB.
#![cfg(feature = "mysql")]
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
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{AssertSqlSafe, Connection, MySql, MySqlConnection, MySqlPool, Transaction};

sendoff_testkit::emit_suite!(Harness);

const SCHEMA: &str = concat!(
    include_str!("../../../stores/mysql/migrations/0001_outbox.sql"),
    include_str!("../../../stores/mysql/migrations/0001_jobs.sql")
);

struct Harness {
    names: Names,
}

impl EmitHarness for Harness {
    type Tx = Transaction<'static, MySql>;

    const DIALECT: Dialect = Dialect::Mysql;

    async fn fresh() -> Self {
        let names = emit_suite::fresh_names();
        let harness = Self { names };
        let create = format!("CREATE DATABASE {};", harness.names.schema().unwrap());
        harness.execute(&(create + &harness.names.render(SCHEMA))).await;
        harness
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn begin(&self) -> Self::Tx {
        pool(&emit_suite::mysql_url()).begin().await.unwrap()
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
        let mut connection = MySqlConnection::connect(&emit_suite::mysql_url()).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .unwrap();
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        let mut connection = MySqlConnection::connect(&emit_suite::mysql_url()).await.unwrap();
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await
            .unwrap()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        matches!(error.downcast_ref(), Some(sqlx::Error::Database(_)))
    }
}

fn pool(url: &str) -> MySqlPool {
    MySqlPoolOptions::new().max_connections(1).connect_lazy(url).unwrap()
}

fn message() -> Message {
    Message::json("a", &1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn emitting_can_be_spawned() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let pool = pool(&emit_suite::mysql_url());
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

/// The session belongs to the application: its settings must not change.
#[tokio::test]
async fn the_session_is_left_as_it_was() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let mut connection = MySqlConnection::connect(&emit_suite::mysql_url()).await.unwrap();
    // The variable has different names on MariaDB and MySQL.
    let session = "SHOW SESSION VARIABLES WHERE variable_name IN ('autocommit', 'time_zone', 'sql_mode', \
                   'tx_isolation', 'transaction_isolation', 'collation_connection')";
    let settings = async |connection: &mut MySqlConnection| {
        let settings = sqlx::query_as::<_, (String, String)>(session).fetch_all(&mut *connection);
        let settings = settings.await.unwrap();
        let database = sqlx::query_scalar::<_, String>("SELECT DATABASE()").fetch_one(connection);
        (settings, database.await.unwrap())
    };
    let before = settings(&mut connection).await;
    let mut tx = connection.begin().await.unwrap();
    let messages = [
        message(),
        message().idempotency_key("k"),
        message().delay(std::time::Duration::from_secs(9)),
    ];
    let _ = outbox.emit_many(&mut tx, messages).await.unwrap();
    let _ = outbox.emit(&mut tx, message()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(settings(&mut connection).await, before);
}
