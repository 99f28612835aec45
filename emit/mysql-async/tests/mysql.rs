//! The emit suite, and tests specific to mysql_async.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

use std::error::Error as StdError;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Transaction, TxOpts};
use sendoff::emit::Dialect;
use sendoff::{Emitted, EmittedMany, Inbox, Message, Once, Outbox, Result, Uuid};
use sendoff_mysql_async as _;
use sendoff_testkit::emit_suite::{self, EmitHarness, message};

sendoff_testkit::emit_suite!(Harness on "mysql", spawned);

impl EmitHarness for Harness {
    type Tx = Transaction<'static>;

    const DIALECT: Dialect = Dialect::Mysql;

    async fn begin(&self) -> Self::Tx {
        // Leaked: the transaction borrows its connection, and a test's process is short.
        let conn: &'static mut Conn = Box::leak(Box::new(connect().await));
        conn.start_transaction(TxOpts::new()).await.unwrap()
    }

    async fn emit(&self, outbox: &Outbox, tx: &mut Self::Tx, message: Message) -> Result<Emitted> {
        outbox.emit(tx, message).await
    }

    async fn emit_many(&self, outbox: &Outbox, tx: &mut Self::Tx, messages: Vec<Message>) -> Result<EmittedMany> {
        outbox.emit_many(tx, messages).await
    }

    async fn once(&self, inbox: &Inbox, tx: &mut Self::Tx, id: Uuid, consumer: &str) -> Result<Once> {
        inbox.once(tx, id, consumer).await
    }

    async fn commit_by(&self, outbox: &Outbox, tx: Self::Tx) {
        outbox.commit(tx).await.unwrap();
    }

    async fn rollback(&self, tx: Self::Tx) {
        tx.rollback().await.unwrap();
    }

    async fn execute(&self, sql: &str) {
        connect().await.query_drop(sql).await.unwrap();
    }

    async fn texts(&self, sql: &str) -> Vec<String> {
        connect().await.query(sql).await.unwrap()
    }

    fn is_driver_error(error: &(dyn StdError + 'static)) -> bool {
        matches!(
            error.downcast_ref::<mysql_async::Error>(),
            Some(mysql_async::Error::Server(_))
        )
    }
}

async fn connect() -> Conn {
    Conn::new(Opts::from_url(&emit_suite::mysql_url()).unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn emitting_works_in_every_isolation_level() {
    use mysql_async::IsolationLevel::{ReadCommitted, RepeatableRead, Serializable};
    let harness = fresh().await;
    let outbox = harness.outbox();
    let mut conn = connect().await;
    for level in [ReadCommitted, RepeatableRead, Serializable] {
        let mut options = TxOpts::new();
        options.with_isolation_level(level);
        let mut tx = conn.start_transaction(options).await.unwrap();
        let _ = outbox.emit_many(&mut tx, [message("a"), message("a")]).await.unwrap();
        let once = message("a").idempotency_key(format!("{level:?}"));
        assert!(!outbox.emit(&mut tx, once).await.unwrap().is_duplicate());
        tx.commit().await.unwrap();
    }
    let topics = harness.sql("SELECT topic FROM outbox_message");
    assert_eq!(harness.texts(&topics).await.len(), 9);
}

/// An old snapshot of the transaction must not hide the holder of a key.
#[tokio::test]
async fn a_duplicate_is_found_behind_an_old_snapshot() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let (mut old, mut new) = (connect().await, connect().await);
    let mut tx = old.start_transaction(TxOpts::new()).await.unwrap();
    let look = harness.sql("SELECT count(*) FROM outbox_dedup");
    let seen: Option<u64> = tx.query_first(&look).await.unwrap();
    assert_eq!(seen, Some(0));
    let first = message("a").idempotency_key("k");
    let mut other = new.start_transaction(TxOpts::new()).await.unwrap();
    let _ = outbox.emit(&mut other, first.clone()).await.unwrap();
    other.commit().await.unwrap();
    let seen: Option<u64> = tx.query_first(&look).await.unwrap();
    assert_eq!(seen, Some(0), "the snapshot must be an old one");
    let second = outbox.emit(&mut tx, message("a").idempotency_key("k")).await.unwrap();
    assert_eq!(second, Emitted::Duplicate { first: first.id() });
    tx.commit().await.unwrap();
}
