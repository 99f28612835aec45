//! The emit suite, and tests specific to diesel-async, on MySQL and MariaDB.
#![cfg(feature = "mysql")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

use std::error::Error as StdError;

use diesel::dsl::sql;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection, TransactionManager};
use sendoff::emit::{Dialect, Names};
use sendoff::{BoxError, Emitted, EmittedMany, Inbox, Message, Once, Outbox, Result, Uuid};
use sendoff_diesel_async as _;
use sendoff_testkit::Log;
use sendoff_testkit::emit_suite::{self, EmitHarness};

sendoff_testkit::emit_suite!(Harness);

const SCHEMA: &str = concat!(
    include_str!("../../../stores/mysql/migrations/0001_outbox.sql"),
    include_str!("../../../stores/mysql/migrations/0001_jobs.sql")
);

type Manager = <AsyncMysqlConnection as AsyncConnection>::TransactionManager;

struct Harness {
    names: Names,
}

impl EmitHarness for Harness {
    /// Started and ended by the manager that `connection.transaction(…)` uses: the suite's cases need more than a
    /// closure.
    type Tx = AsyncMysqlConnection;

    const DIALECT: Dialect = Dialect::Mysql;

    async fn fresh() -> Self {
        let names = emit_suite::fresh_names();
        let harness = Self { names };
        let create = format!("CREATE DATABASE {};", harness.names.schema().unwrap());
        EmitHarness::execute(&harness, &(create + &harness.names.render(SCHEMA))).await;
        harness
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn begin(&self) -> Self::Tx {
        let mut connection = connect().await;
        Manager::begin_transaction(&mut connection).await.unwrap();
        connection
    }

    async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted> {
        outbox.emit(tx, message).await
    }

    async fn emit_many(&self, outbox: &Outbox, tx: &mut Self::Tx, messages: Vec<Message>) -> Result<EmittedMany> {
        outbox.emit_many(tx, messages).await
    }

    async fn commit(&self, mut tx: Self::Tx) {
        Manager::commit_transaction(&mut tx).await.unwrap();
    }

    async fn rollback(&self, mut tx: Self::Tx) {
        Manager::rollback_transaction(&mut tx).await.unwrap();
    }

    async fn execute(&self, sql: &str) {
        connect().await.batch_execute(sql).await.unwrap();
    }

    async fn texts(&self, text: &str) -> Vec<String> {
        sql::<Text>(text).load(&mut connect().await).await.unwrap()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        matches!(error.downcast_ref(), Some(diesel::result::Error::DatabaseError(..)))
    }
}

async fn connect() -> AsyncMysqlConnection {
    AsyncMysqlConnection::establish(&emit_suite::mysql_url()).await.unwrap()
}

fn message() -> Message {
    Message::json("a", &1).unwrap()
}

async fn emitted(harness: &Harness) -> usize {
    harness
        .texts(&harness.names().render("SELECT topic FROM outbox_message"))
        .await
        .len()
}

#[tokio::test(flavor = "multi_thread")]
async fn emitting_can_be_spawned() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let mut connection = connect().await;
    let task = tokio::spawn(async move {
        connection
            .transaction(async |tx| {
                let _ = outbox.emit(&mut *tx, message()).await?;
                let _ = outbox.emit_many(tx, [message(), message()]).await?;
                Ok::<_, BoxError>(())
            })
            .await
    });
    task.await.unwrap().unwrap();
    assert_eq!(emitted(&harness).await, 3);
}

#[tokio::test]
async fn an_error_of_the_closure_takes_the_message_back() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let mut connection = connect().await;
    let outcome = connection.transaction(async |tx| {
        let _ = outbox.emit(tx, message()).await?;
        Err::<(), BoxError>("the order cannot be placed".into())
    });
    outcome.await.unwrap_err();
    assert_eq!(emitted(&harness).await, 0);
}

#[tokio::test]
async fn emitting_outside_a_transaction_warns() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let mut connection = connect().await;
    let (warnings, _guard) = Log::collect(tracing::Level::WARN);

    let _ = outbox.emit(&mut connection, message()).await.unwrap();
    let warned = warnings.take();
    assert!(
        warned.contains("WARN") && warned.contains("sendoff::emit: a message is emitted outside a transaction"),
        "{warned}"
    );
    assert!(warned.contains("connection.transaction("), "{warned}");

    let emit = connection.transaction(async |tx| Ok::<_, BoxError>(outbox.emit(tx, message()).await?));
    let _ = emit.await.unwrap();
    assert_eq!(warnings.take(), "");
    assert_eq!(emitted(&harness).await, 2);
}

/// The procedure returns rows the first time only.
#[tokio::test]
async fn a_message_is_first_once_for_a_consumer() {
    let harness = Harness::fresh().await;
    let inbox = Inbox::with_names(harness.names());
    let (id, mut connection) = (Uuid::now_v7(), connect().await);
    for expected in [Once::First, Once::Seen, Once::Seen] {
        let once = connection.transaction(async |tx| Ok::<_, BoxError>(inbox.once(tx, id, "billing").await?));
        assert_eq!(once.await.unwrap(), expected);
    }
}
