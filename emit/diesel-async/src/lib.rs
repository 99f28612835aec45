//! Emit Sendoff messages inside a diesel-async transaction.
//!
//! Linking this crate is all there is to it: [`sendoff::Outbox::emit`] then takes `&mut AsyncPgConnection`, and with the
//! feature `mysql` (on unless switched off) `&mut AsyncMysqlConnection`, which is what the closure of a transaction gets.
//!
//! ```no_run
//! use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
//! use sendoff::{BoxError, Message, Outbox};
//! use sendoff_diesel_async as _;
//!
//! # async fn place_order(mut connection: AsyncPgConnection) -> Result<(), BoxError> {
//! let outbox = Outbox::new();
//!
//! connection
//!     .transaction(async |tx| {
//!         diesel::sql_query("INSERT INTO orders (id) VALUES (42)").execute(tx).await?;
//!         outbox.emit(tx, Message::json("order.placed", &42)?.key("customer-7")).await?;
//!         Ok::<_, BoxError>(())
//!     })
//!     .await?;
//! outbox.wake();
//! # Ok(())
//! # }
//! ```
//!
//! The closure's `tx` is used up by the last emit; write `outbox.emit(&mut *tx, …)` where more is to follow. A pooled
//! connection holds one of these: `outbox.emit(&mut **tx, …)`.
//!
//! # Only inside a transaction
//!
//! Diesel has one type for a connection and for a transaction on it, so the compiler cannot refuse an emit outside of
//! one. Such a message is committed by itself, whatever becomes of the application's rows; a warning of the target
//! `sendoff::emit` says so.
#![forbid(unsafe_code)]

#[cfg(feature = "mysql")]
mod mysql;
mod query;
mod transaction;

#[cfg(feature = "mysql")]
pub use mysql::DieselAsyncMysql;

use diesel_async::AsyncPgConnection;

use sendoff::emit::{Dialect, OutboxTx, Statement};
use sendoff::{BoxError, Uuid};

/// Marks the adapter for `&mut AsyncPgConnection`. It is inferred and never written.
#[derive(Debug)]
pub enum DieselAsync {}

impl OutboxTx<DieselAsync> for &mut AsyncPgConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        transaction::warn_if_none(&mut **self);
        query::run(self, statement).await
    }
}
