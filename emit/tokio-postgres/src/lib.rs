//! Emit Sendoff messages inside a tokio-postgres transaction.
//!
//! Linking this crate is all there is to it: [`sendoff::Outbox::emit`] then takes `&tokio_postgres::Transaction`, and
//! `&mut`, too.
//!
//! ```no_run
//! use sendoff::{Message, Outbox};
//! use sendoff_tokio_postgres as _;
//!
//! # async fn place_order(mut client: tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::new();
//!
//! let tx = client.transaction().await?;
//! tx.execute("INSERT INTO orders (id) VALUES (42)", &[]).await?;
//! outbox.emit(&tx, Message::json("order.placed", &42)?.key("customer-7")).await?;
//! tx.commit().await?;
//! outbox.wake();
//! # Ok(())
//! # }
//! ```
//!
//! A transaction of `deadpool_postgres` is one of these underneath: `outbox.emit(&*tx, …)`.
//!
//! Every emit is one round trip with a nameless statement, so it works through PgBouncer in transaction mode, too.
//!
//! # Only a transaction will do
//!
//! A message that is not in the same transaction as the application's own rows can be lost, or sent for rows that never
//! came to be. So a client is not accepted:
//!
//! ```compile_fail,E0277
//! # use sendoff_tokio_postgres as _;
//! # async fn with_a_client(outbox: sendoff::Outbox, client: tokio_postgres::Client, message: sendoff::Message) {
//! outbox.emit(&client, message).await;
//! # }
//! ```
#![forbid(unsafe_code)]

use sendoff::emit::{Dialect, OutboxTx, Param, Statement};
use sendoff::{BoxError, Uuid};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

/// Marks the adapter for `&tokio_postgres::Transaction<'_>`. It is inferred and never written.
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

async fn run(tx: &Transaction<'_>, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
    let params: Vec<_> = statement.params().iter().map(typed).collect();
    if !statement.returns_ids() {
        tx.execute_typed(statement.sql(), &params).await?;
        return Ok(Vec::new());
    }
    let rows = tx.query_typed(statement.sql(), &params).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// The value with its type: naming the types spares the round trip that asks the server for them.
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
