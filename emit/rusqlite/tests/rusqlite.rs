//! The emit suite, and tests specific to rusqlite.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

use std::error::Error as StdError;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sendoff::emit::Dialect;
use sendoff::{Emitted, EmittedMany, ErrorKind, Inbox, Message, OnDuplicate, Once, Outbox, Result, Uuid};
use sendoff_rusqlite as _;
use sendoff_testkit::Log;
use sendoff_testkit::emit_suite::EmitHarness;

sendoff_testkit::emit_suite!(Harness on "sqlite");

impl Harness {
    fn connection(&self) -> Connection {
        let connection = Connection::open(self.file()).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {}", self.names().table(table));
        self.connection().query_row(&sql, [], |row| row.get(0)).unwrap()
    }
}

impl EmitHarness for Harness {
    /// Its connection is leaked, because a rusqlite transaction borrows it.
    type Tx = Transaction<'static>;

    const DIALECT: Dialect = Dialect::Sqlite;

    async fn begin(&self) -> Self::Tx {
        let connection = Box::leak(Box::new(self.connection()));
        connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .unwrap()
    }

    async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted> {
        outbox.emit(&*tx, message).await
    }

    async fn emit_many(&self, outbox: &Outbox, tx: &mut Self::Tx, messages: Vec<Message>) -> Result<EmittedMany> {
        outbox.emit_many(&*tx, messages).await
    }

    async fn once(&self, inbox: &Inbox, tx: &mut Self::Tx, id: Uuid, consumer: &str) -> Result<Once> {
        inbox.once(&*tx, id, consumer).await
    }

    async fn commit_by(&self, outbox: &Outbox, tx: Self::Tx) {
        outbox.commit_blocking(tx).unwrap();
    }

    async fn rollback(&self, tx: Self::Tx) {
        tx.rollback().unwrap();
    }

    async fn execute(&self, sql: &str) {
        self.connection().execute_batch(sql).unwrap();
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        let connection = self.connection();
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        error.is::<rusqlite::Error>()
    }
}

fn message(n: u8) -> Message {
    Message::bytes("order.placed", "application/octet-stream", vec![n])
}

#[tokio::test]
async fn blocking_emits_need_no_runtime_of_their_own() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let mut connection = harness.connection();
    let tx = connection.transaction().unwrap();
    let first = outbox.emit_blocking(&tx, message(1).idempotency_key("once")).unwrap();
    let second = outbox.emit_blocking(&tx, message(2).idempotency_key("once")).unwrap();
    assert_eq!(second, Emitted::Duplicate { first: first.id() });
    let failing = message(3).idempotency_key("once").on_duplicate(OnDuplicate::Fail);
    assert_eq!(
        outbox.emit_blocking(&tx, failing).unwrap_err().kind(),
        ErrorKind::Duplicate
    );
    let many = outbox.emit_many_blocking(&tx, [message(4), message(5)]).unwrap();
    assert!(!many.has_duplicates());
    tx.commit().unwrap();
    assert_eq!(harness.count("message"), 3);
}

#[tokio::test]
async fn a_savepoint_that_is_rolled_back_takes_its_messages_with_it() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let mut connection = harness.connection();
    let mut tx = connection.transaction().unwrap();
    let _ = outbox.emit_blocking(&tx, message(1)).unwrap();
    {
        let savepoint = tx.savepoint().unwrap();
        let _ = outbox.emit_blocking(&savepoint, message(2)).unwrap();
    }
    let mut savepoint = tx.savepoint().unwrap();
    let _ = outbox.emit_blocking(&savepoint, message(3)).unwrap();
    savepoint.rollback().unwrap();
    let _ = outbox.emit_blocking(&savepoint, message(4)).unwrap();
    savepoint.commit().unwrap();
    tx.commit().unwrap();
    let payloads = harness.sql("SELECT hex(payload) FROM outbox_message ORDER BY seq");
    assert_eq!(harness.texts(&payloads).await, ["01", "04"]);
}

#[tokio::test]
async fn emitting_on_a_connection_warns_only_outside_a_transaction() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let connection = harness.connection();
    let (lines, _guard) = Log::collect(tracing::Level::WARN);
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let _ = outbox.emit_blocking(&connection, message(1)).unwrap();
    connection.execute_batch("COMMIT").unwrap();
    assert_eq!(lines.take(), "");
    let _ = outbox.emit_blocking(&connection, message(2)).unwrap();
    let warned = lines.take();
    assert!(
        warned.contains("WARN") && warned.contains("outside a transaction"),
        "{warned}"
    );
    assert_eq!(harness.count("message"), 2);
}

#[tokio::test]
async fn a_transaction_that_sqlite_has_ended_takes_no_message() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let mut connection = harness.connection();
    let tx = connection.transaction().unwrap();
    let _ = outbox.emit_blocking(&tx, message(1)).unwrap();
    // SQLite does the same by itself after some errors, such as a full disk.
    tx.execute_batch("ROLLBACK").unwrap();
    let error = outbox.emit_blocking(&tx, message(2)).unwrap_err();
    assert!(error.to_string().contains("the transaction has ended"), "{error}");
    drop(tx);
    assert_eq!(harness.count("message"), 0);
}

#[tokio::test]
async fn a_database_that_is_busy_is_the_callers_to_see() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let writer = harness.connection();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut connection = harness.connection();
    connection.busy_timeout(Duration::from_millis(20)).unwrap();
    let tx = connection.transaction().unwrap();
    let error = outbox.emit_blocking(&tx, message(1)).unwrap_err();
    let source = error.source().unwrap().downcast_ref::<rusqlite::Error>().unwrap();
    assert_eq!(source.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
}
