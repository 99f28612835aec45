//! Emit Sendoff messages inside a rusqlite transaction.
//!
//! Applications turn it on with the feature `rusqlite` of the crate `sendoff`. [`sendoff::Outbox::emit_blocking`] then
//! accepts `&rusqlite::Transaction` and `&rusqlite::Savepoint`. In asynchronous code `outbox.emit(&tx, message).await`
//! does the same; it never waits.
//!
//! ```
//! use rusqlite::{Connection, TransactionBehavior};
//! use sendoff::{Message, Outbox};
//! # use sendoff_rusqlite as _;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use sendoff::store::MigrateStore;
//! # use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
//! # let mut connection = Connection::open_in_memory()?;
//! # connection.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY)")?;
//! # for migration in SqliteStore::new(SqliteConfig::new("shop.db"))?.migrations() {
//! #     connection.execute_batch(&migration.sql)?;
//! # }
//! let outbox = Outbox::new();
//!
//! let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
//! tx.execute("INSERT INTO orders (id) VALUES (42)", [])?;
//! let id = outbox.emit_blocking(&tx, Message::json("order.placed", &42)?.key("customer-7"))?.id();
//! outbox.commit_blocking(tx)?;
//! # let emitted: i64 = connection.query_row("SELECT count(*) FROM outbox_message", [], |row| row.get(0))?;
//! # assert_eq!(emitted, 1);
//! # Ok(())
//! # }
//! ```
//!
//! Start with [`Immediate`](rusqlite::TransactionBehavior::Immediate), as above: a transaction that takes the write
//! lock only when it emits may find the database busy then, and must start again.
//!
//! # Outside a transaction
//!
//! A `&rusqlite::Connection` is accepted, too, for programs that start and end transactions with SQL. Such a connection
//! may be outside a transaction; then a message is committed on its own, even if the application's rows are rolled
//! back, and a warning with the target `sendoff::emit` reports it. A `Transaction` or `Savepoint` whose transaction SQLite
//! has already rolled back by itself, as after a full disk, is an error.
//!
//! # Requirements
//!
//! The outbox's tables (`sendoff migrate`, or `MigrateStore::migrate` of the crate `sendoff-store-sqlite`) and SQLite
//! 3.41 or newer, which rusqlite's feature `bundled` includes.
#![forbid(unsafe_code)]

mod bind;

use rusqlite::{Connection, Savepoint, Transaction};
use sendoff::emit::{CommitTx, Dialect, OutboxTx, Statement};
use sendoff::{BoxError, Uuid};

/// Marks the adapters for rusqlite. The compiler infers it.
#[derive(Debug)]
pub enum Rusqlite {}

impl OutboxTx<Rusqlite> for &Transaction<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        is_open(self)?;
        run(self, statement)
    }
}

impl CommitTx<Rusqlite> for Transaction<'_> {
    type Error = rusqlite::Error;

    async fn commit(self) -> rusqlite::Result<()> {
        Transaction::commit(self)
    }
}

impl OutboxTx<Rusqlite> for &Savepoint<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        is_open(self)?;
        run(self, statement)
    }
}

impl OutboxTx<Rusqlite> for &Connection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        if self.is_autocommit() {
            tracing::warn!(
                target: "sendoff::emit",
                event = "emit_outside_transaction",
                "a message is emitted outside a transaction: it is committed on its own, even if the application's \
                 rows are rolled back (emit it between BEGIN IMMEDIATE and COMMIT)"
            );
        }
        run(self, statement)
    }
}

/// SQLite rolls a transaction back by itself after some errors, such as a full disk. A message that is written then would
/// be committed on its own.
fn is_open(transaction: &Connection) -> Result<(), BoxError> {
    if transaction.is_autocommit() {
        return Err(
            "the transaction has ended: SQLite rolled it back after an error, or the application ended it".into(),
        );
    }
    Ok(())
}

fn run(connection: &Connection, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
    let mut prepared = connection.prepare_cached(statement.sql())?;
    let values = bind::values(statement.params())?;
    let values = rusqlite::params_from_iter(values);
    if !statement.returns_ids() {
        prepared.execute(values)?;
        return Ok(Vec::new());
    }
    let mut rows = prepared.query(values)?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(Uuid::parse_str(row.get_ref(0)?.as_str()?)?);
    }
    Ok(ids)
}
