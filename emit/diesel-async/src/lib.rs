//! Emit Sendoff messages inside a diesel-async transaction.
//!
//! Applications turn it on with a feature of the crate `sendoff`: `diesel-async-postgres` or `diesel-async-mysql`.
//! [`sendoff::Outbox::emit`] then accepts `&mut AsyncPgConnection`, and with the feature for MySQL (`mysql` here, a
//! default feature) `&mut AsyncMysqlConnection`. The closure of a transaction gets one of these.
//!
//! ```no_run
//! use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
//! use sendoff::{BoxError, Message, Outbox};
//! # use sendoff_diesel_async as _;
//!
//! # async fn place_order(mut connection: AsyncPgConnection) -> Result<(), BoxError> {
//! let outbox = Outbox::new();
//!
//! let placed = connection.transaction(async |tx| {
//!     diesel::sql_query("INSERT INTO orders (id) VALUES (42)").execute(tx).await?;
//!     let emitted = outbox.emit(tx, Message::json("order.placed", &42)?.key("customer-7")).await?;
//!     Ok::<_, BoxError>(emitted.id())
//! });
//! let id = outbox.wake_after(placed).await?;
//! # Ok(())
//! # }
//! ```
//!
//! An emit moves the closure's `tx`; write `outbox.emit(&mut *tx, …)` if more statements follow. For a pooled
//! connection write `outbox.emit(&mut **tx, …)`.
//!
//! # Only inside a transaction
//!
//! Diesel has one type for a connection and for a transaction on it, so the compiler cannot reject an emit outside a
//! transaction. Such a message is committed on its own, even if the application's rows are rolled back; a warning with
//! the target `sendoff::emit` reports it.
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

/// Marks the adapter for `&mut AsyncPgConnection`. The compiler infers it.
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
