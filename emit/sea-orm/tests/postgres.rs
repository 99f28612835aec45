//! The emit suite, and tests specific to sea-orm, on PostgreSQL.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

use std::error::Error as StdError;

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr};
use sea_orm::{Statement, TransactionTrait};
use sendoff::emit::{Dialect, Names};
use sendoff::{Emitted, EmittedMany, Message, Outbox, Result};
use sendoff_sea_orm as _;
use sendoff_testkit::emit_suite::{self, EmitHarness};

sendoff_testkit::emit_suite!(Harness);

const SCHEMA: &str = concat!(
    include_str!("../../../stores/postgres/migrations/0001_outbox.sql"),
    include_str!("../../../stores/postgres/migrations/0001_jobs.sql")
);

struct Harness {
    names: Names,
}

impl EmitHarness for Harness {
    type Tx = DatabaseTransaction;

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
        connect().await.begin().await.unwrap()
    }

    async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted> {
        outbox.emit(&*tx, message).await
    }

    async fn emit_many(&self, outbox: &Outbox, tx: &mut Self::Tx, messages: Vec<Message>) -> Result<EmittedMany> {
        outbox.emit_many(&*tx, messages).await
    }

    async fn commit(&self, tx: Self::Tx) {
        tx.commit().await.unwrap();
    }

    async fn rollback(&self, tx: Self::Tx) {
        tx.rollback().await.unwrap();
    }

    async fn execute(&self, sql: &str) {
        connect().await.execute_unprepared(sql).await.unwrap();
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        let query = Statement::from_string(DbBackend::Postgres, sql);
        let rows = connect().await.query_all_raw(query).await.unwrap();
        rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        matches!(error.downcast_ref(), Some(DbErr::Exec(_) | DbErr::Query(_)))
    }
}

async fn connect() -> DatabaseConnection {
    let options = ConnectOptions::new(emit_suite::postgres_url())
        .max_connections(1)
        .to_owned();
    Database::connect(options).await.unwrap()
}

fn message() -> Message {
    Message::json("a", &1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn emitting_can_be_spawned() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let db = connect().await;
    let task = tokio::spawn(async move {
        let tx = db.begin().await.unwrap();
        let _ = outbox.emit(&tx, message()).await.unwrap();
        let _ = outbox.emit_many(&tx, [message(), message()]).await.unwrap();
        tx.commit().await.unwrap();
    });
    task.await.unwrap();
    let topics = harness.names().render("SELECT topic FROM outbox_message");
    assert_eq!(harness.texts(&topics).await, ["a"; 3]);
}

/// A statement is prepared once per connection, with the types of its first values.
#[tokio::test]
async fn one_connection_takes_many_messages_with_and_without_what_is_optional() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let tx = harness.begin().await;
    let bare = || vec![message(), message()];
    let full = || {
        bare()
            .into_iter()
            .map(|message| message.key("k").header("h", "v").max_attempts(3))
    };
    for _ in 0..2 {
        let _ = outbox.emit_many(&tx, bare()).await.unwrap();
        let _ = outbox.emit_many(&tx, full()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let keys = harness
        .names()
        .render("SELECT key FROM outbox_message WHERE key IS NOT NULL AND max_attempts = 3");
    assert_eq!(harness.texts(&keys).await, ["k"; 4]);
}
