//! Checks for a transaction.

use diesel_async::{AsyncConnection, TransactionManager};

/// Warns when the connection is not inside a transaction. A broken transaction manager is not reported here: the
/// statement itself fails then.
pub(crate) fn warn_if_none<C: AsyncConnection>(connection: &mut C) {
    let depth = C::TransactionManager::transaction_manager_status_mut(connection).transaction_depth();
    if matches!(depth, Ok(None)) {
        tracing::warn!(
            target: "sendoff::emit",
            event = "emit_outside_transaction",
            "a message is emitted outside a transaction: it is committed on its own, even if the application's rows \
             are rolled back (emit it inside connection.transaction(…))"
        );
    }
}
