//! What an adapter crate implements for its driver's transaction type.

use std::future::Future;

use uuid::Uuid;

use super::{Dialect, Statement};
use crate::BoxError;

/// A transaction of some database driver, borrowed from the application.
///
/// `Adapter` is a marker type of the adapter crate. It is always inferred; it lets a crate implement this trait for a
/// type of the driver that neither it nor Sendoff owns.
///
/// # Duties
/// - [`run`](OutboxTx::run) runs the statement inside the borrowed transaction: it neither begins nor ends one.
/// - It binds the values of [`Statement::params`] in order, with the types of [`super::Param`].
/// - For a statement that [returns ids](Statement::returns_ids) it returns the first column of every row, in order;
///   otherwise it returns an empty list.
/// - A type that can also be a connection outside a transaction logs a warning when it is used that way.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transaction that Sendoff can emit in",
    note = "pass the open transaction that also writes your own rows, not a pool or a connection",
    note = "turn on the adapter of your driver, as in `cargo add sendoff --features sqlx-postgres`"
)]
pub trait OutboxTx<Adapter> {
    /// The SQL dialect of the transaction's database.
    fn dialect(&self) -> Dialect;

    /// Runs one of Sendoff's statements.
    ///
    /// # Errors
    /// The driver's own error, unchanged: [`crate::Outbox`] adds the explanation.
    fn run(&mut self, statement: &Statement<'_>) -> impl Future<Output = Result<Vec<Uuid>, BoxError>>;
}

/// A transaction that the outbox can commit: what [`Outbox::commit`](crate::Outbox::commit) accepts.
///
/// `Adapter` is the marker type of [`OutboxTx`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transaction that Sendoff can commit",
    note = "pass the transaction itself, not a reference; for any other way to commit, use `outbox.wake_after(…)`",
    note = "turn on the adapter of your driver, as in `cargo add sendoff --features sqlx-postgres`"
)]
pub trait CommitTx<Adapter> {
    /// The driver's error.
    type Error;

    /// Commits, as the driver does.
    ///
    /// # Errors
    /// The driver's own error, unchanged.
    fn commit(self) -> impl Future<Output = Result<(), Self::Error>>;
}
