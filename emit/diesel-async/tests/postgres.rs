//! The emit suite, and tests specific to diesel-async, on PostgreSQL.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

use std::error::Error as StdError;

use diesel::sql_types::Text;
use diesel::{QueryableByName, sql_query};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection, TransactionManager};
use sendoff::emit::{Dialect, Names};
use sendoff::{BoxError, Emitted, EmittedMany, Message, Outbox, Result};
use sendoff_diesel_async as _;
use sendoff_testkit::Log;
use sendoff_testkit::emit_suite::{self, EmitHarness};

sendoff_testkit::emit_suite!(Harness);

const SCHEMA: &str = concat!(
    include_str!("../../../stores/postgres/migrations/0001_outbox.sql"),
    include_str!("../../../stores/postgres/migrations/0001_jobs.sql")
);

type Manager = <AsyncPgConnection as AsyncConnection>::TransactionManager;

struct Harness {
    names: Names,
}

impl EmitHarness for Harness {
    /// Started and ended by the manager that `connection.transaction(…)` uses: the suite's cases need more than a
    /// closure.
    type Tx = AsyncPgConnection;

    const DIALECT: Dialect = Dialect::Postgres;

    async fn fresh() -> Self {
        let names = emit_suite::fresh_names();
        let harness = Self { names };
        let create = format!("CREATE SCHEMA {};", harness.names.schema().unwrap());
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

    async fn texts(&self, sql: &str) -> Vec<String> {
        let sql = format!("SELECT answer.value FROM ({sql}) AS answer (value)");
        let rows: Vec<Answer> = sql_query(sql).load(&mut connect().await).await.unwrap();
        rows.into_iter().map(|row| row.value).collect()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        matches!(error.downcast_ref(), Some(diesel::result::Error::DatabaseError(..)))
    }
}

#[derive(QueryableByName)]
struct Answer {
    #[diesel(sql_type = Text)]
    value: String,
}

async fn connect() -> AsyncPgConnection {
    AsyncPgConnection::establish(&emit_suite::postgres_url()).await.unwrap()
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

#[tokio::test]
async fn the_statement_is_prepared_once_a_connection() {
    let harness = Harness::fresh().await;
    let outbox = Outbox::builder().names(harness.names().clone()).build();
    let mut tx = harness.begin().await;
    for _ in 0..3 {
        let _ = outbox.emit(&mut tx, message()).await.unwrap();
    }
    // Sendoff's statements start with a comment.
    let prepared = "SELECT generic_plans::text || custom_plans::text AS value FROM pg_prepared_statements \
                    WHERE statement LIKE '--%'";
    let rows: Vec<Answer> = sql_query(prepared).load(&mut tx).await.unwrap();
    let values: Vec<_> = rows.iter().map(|row| row.value.as_str()).collect();
    assert_eq!(values, ["03"]);
}
