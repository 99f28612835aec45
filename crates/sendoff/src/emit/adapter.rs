//! What an adapter crate implements for its driver's transaction type.

use std::future::Future;

use uuid::Uuid;

use super::{Dialect, Statement};
use crate::{BoxError, Result};

/// A transaction of some database driver, borrowed from the application.
///
/// `Adapter` is a marker type of the adapter crate. It is always inferred; it lets a crate implement this trait for a
/// type of the driver that neither it nor Sendoff owns.
///
/// # Duties
/// - [`run`](OutboxTx::run) runs the statement inside the borrowed transaction: it neither begins nor ends one.
/// - The values of [`Statement::params`] are bound in order, as the types that [`super::Param`] names.
/// - For a statement that [returns ids](Statement::returns_ids) the first column of every row, in order, is returned;
///   otherwise an empty list.
/// - A type that can also stand for a connection outside a transaction warns, by `tracing`, when it is used so.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no transaction that Sendoff can emit in",
    note = "hand over the open transaction that also writes your own rows, not a pool or a connection",
    note = "link the adapter of your driver, as in `use sendoff_sqlx as _;`"
)]
pub trait OutboxTx<Adapter> {
    /// The SQL dialect of the database behind this transaction.
    fn dialect(&self) -> Dialect;

    /// Runs one statement of Sendoff's.
    ///
    /// # Errors
    /// The driver's own error, untouched: [`crate::Outbox`] adds the words.
    fn run(&mut self, statement: &Statement<'_>) -> impl Future<Output = Result<Vec<Uuid>, BoxError>>;
}
