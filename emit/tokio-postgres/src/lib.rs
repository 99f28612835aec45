//! Emit Sendoff messages inside a tokio-postgres transaction.
//!
//! Applications turn it on with the feature `tokio-postgres` of the crate `sendoff`. [`sendoff::Outbox::emit`] then
//! accepts `&tokio_postgres::Transaction` and `&mut tokio_postgres::Transaction`.
//!
//! ```no_run
//! use sendoff::{Message, Outbox};
//! # use sendoff_tokio_postgres as _;
//!
//! # async fn place_order(mut client: tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::new();
//!
//! let tx = client.transaction().await?;
//! tx.execute("INSERT INTO orders (id) VALUES (42)", &[]).await?;
//! let id = outbox.emit(&tx, Message::json("order.placed", &42)?.key("customer-7")).await?.id();
//! outbox.commit(tx).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A transaction of `deadpool_postgres` wraps one of these: `outbox.emit(&*tx, …)`, and
//! `outbox.wake_after(tx.commit())`.
//!
//! Every emit is one round trip with an unnamed statement, so it also works through PgBouncer in transaction mode.
//!
//! # Only inside a transaction
//!
//! A message outside the transaction of the application's own rows can be lost, or sent for rows that were never
//! committed. So a client is not accepted:
//!
//! ```compile_fail,E0277
//! # use sendoff_tokio_postgres as _;
//! # async fn with_a_client(outbox: sendoff::Outbox, client: tokio_postgres::Client, message: sendoff::Message) {
//! outbox.emit(&client, message).await;
//! # }
//! ```
#![forbid(unsafe_code)]

use sendoff::emit::{CommitTx, Dialect, OutboxTx, Param, Statement};
use sendoff::{BoxError, Uuid};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

/// Marks the adapter for `&tokio_postgres::Transaction<'_>`. The compiler infers it.
#[derive(Debug)]
pub enum TokioPostgres {}

impl OutboxTx<TokioPostgres> for &Transaction<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        run(self, statement).await
    }
}

impl OutboxTx<TokioPostgres> for &mut Transaction<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        run(self, statement).await
    }
}

impl CommitTx<TokioPostgres> for Transaction<'_> {
    type Error = tokio_postgres::Error;

    async fn commit(self) -> Result<(), tokio_postgres::Error> {
        Transaction::commit(self).await
    }
}

async fn run(tx: &Transaction<'_>, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
    let params: Vec<_> = statement.params().iter().map(typed).collect();
    if !statement.returns_ids() {
        tx.execute_typed(statement.sql(), &params).await?;
        return Ok(Vec::new());
    }
    let rows = tx.query_typed(statement.sql(), &params).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// The value with its type: explicit types save the round trip that asks the server for them.
fn typed<'a>(param: &'a Param<'_>) -> (&'a (dyn ToSql + Sync), Type) {
    match param {
        Param::Uuid(id) => (id, Type::UUID),
        Param::Text(text) => (text, Type::TEXT),
        Param::Bytes(bytes) => (bytes, Type::BYTEA),
        Param::Int(int) => (int, Type::INT8),
        Param::Uuids(ids) => (ids, Type::UUID_ARRAY),
        Param::Texts(texts) => (texts, Type::TEXT_ARRAY),
        Param::Blobs(blobs) => (blobs, Type::BYTEA_ARRAY),
        Param::Ints(ints) => (ints, Type::INT8_ARRAY),
    }
}
