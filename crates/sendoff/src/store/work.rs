//! Room: work. Items that workers of the application claim and finish themselves: row leases.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::{Claim, Command, EmitTransaction, Filter, Item, ItemCounts, ItemState, StoredItem};
use crate::{Error, ErrorKind, Result};

/// No more payload than this, and one item, is handed out at once.
pub const CLAIM_BYTES: usize = 32 << 20;

/// What pull workers ask of a store. Items are written by an [`crate::Outbox`] that was
/// [told to](crate::emit::OutboxBuilder::items), in the same transaction as the application's own rows.
///
/// # States
/// `pending → running → (gone, or completed)`, `running → retry → running`, `running → failed`. An operator brings
/// failed items back by [`retry_failed`](WorkStore::retry_failed).
///
/// # Duties, for all methods
/// - Time is the database's clock; a host's clock decides nothing.
/// - No transaction stays open after a method returns; everything works through a pooler.
/// - An item is handed to nobody else while a lease on it holds.
/// - Whatever a worker does to an item is done only while the item is *held*: it is running, its lease owner is this
///   worker, its number is the claim's, and its lease has not run out. Nothing of an item that is not held is changed.
/// - A hand-out has a number that no other hand-out of the item ever had, so that a worker cannot act on an earlier claim
///   of its own.
#[async_trait]
pub trait WorkStore: Send + Sync + 'static {
    /// Begins a transaction of the store's own that emits items. Applications emit in their own transactions instead.
    ///
    /// # Errors
    /// As [`EmitStore::begin`](super::EmitStore::begin).
    async fn begin_items(&self) -> Result<Box<dyn EmitTransaction>>;

    /// Hands out up to `limit` items, and no more than [`CLAIM_BYTES`] of payload and one item: those with the earliest next
    /// attempt first (then in the order of their emission), leased to `worker` for as long as `lease`. Each is charged with an attempt now, so that one which kills its
    /// workers is given up in the end.
    ///
    /// Items whose lease has run out are handed out like others. Those with no attempt left, expired or unreadable ones
    /// become failed instead, with the reason; they are not returned.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a worker without a name; what the database says.
    async fn claim_batch(&self, worker: &str, limit: usize, lease: Duration) -> Result<Vec<Item>>;

    /// Renews the lease on held items: from now on, for as long as `lease`. Returns those that were not held.
    ///
    /// # Errors
    /// What the database says.
    async fn extend(&self, worker: &str, claims: &[Claim], lease: Duration) -> Result<Vec<Claim>>;

    /// Gives held items back unworked: due at once, and not charged with the attempt. Returns those that were not held.
    ///
    /// # Errors
    /// What the database says.
    async fn release(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>>;

    /// Held items are done: deleted, or completed where the store has a retention. Returns those that were not held.
    ///
    /// Losing the commit in a crash of the server only makes them run again, so a store need not wait for its disk.
    ///
    /// # Errors
    /// What the database says; then it is unknown which of them are done.
    async fn mark_success(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>>;

    /// A held item failed and is due again after `delay`; without an attempt left it is failed for good. Returns which.
    ///
    /// # Errors
    /// [`ErrorKind::LeaseLost`] when it is not held; what the database says.
    async fn mark_retry(&self, worker: &str, claim: Claim, delay: Duration, error: &str) -> Result<ItemState>;

    /// A held item failed for good.
    ///
    /// # Errors
    /// [`ErrorKind::LeaseLost`] when it is not held; what the database says.
    async fn mark_failed(&self, worker: &str, claim: Claim, error: &str) -> Result<()>;

    /// Takes running items whose lease ran out as long ago as `stale_after`, or longer, and that nobody has claimed since:
    /// due at once, or failed without an attempt left. A lease that holds is left alone. Returns how many.
    ///
    /// # Errors
    /// What the database says.
    async fn reap(&self, stale_after: Duration) -> Result<u64>;

    /// How many items there are.
    ///
    /// # Errors
    /// What the database says.
    async fn item_counts(&self) -> Result<ItemCounts>;

    /// Brings up to `limit` failed items back, the oldest first, or of these ids if there are any: due at once, with no
    /// attempt charged. The audit has it with `asked`, which the ids were chosen by. Returns how many.
    ///
    /// # Errors
    /// What the database says.
    async fn retry_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64>;

    /// Up to `limit` items in the order of their emission: those whose number is above `after`, in this state if one is
    /// given, and of these ids if there are any.
    ///
    /// # Errors
    /// What the database says.
    async fn items(&self, state: Option<ItemState>, ids: &[Uuid], after: i64, limit: usize) -> Result<Vec<StoredItem>>;

    /// Deletes up to `limit` failed items for good, the oldest first, or of these ids if there are any, and notes it the same
    /// way. Returns how many.
    ///
    /// # Errors
    /// What the database says.
    async fn discard_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64>;
}

/// The error of a worker that acts on an item which it does not hold (any more).
pub fn lease_lost(what: &str, worker: &str) -> Error {
    Error::new(ErrorKind::LeaseLost, what)
        .because(format!(
            "worker {worker:?} does not hold it: its lease ran out, was taken away, or the item was marked before"
        ))
        .next_step("nothing was changed: drop the work, or raise the lease or extend it more often")
}

/// Fails for a worker's name that cannot be told from others.
///
/// # Errors
/// [`ErrorKind::Invalid`] unless it has 1 to 255 bytes and no NUL.
pub fn check_worker(worker: &str) -> Result<()> {
    if (1..=255).contains(&worker.len()) && !worker.contains('\0') {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Invalid, "the worker's name cannot be used")
        .because("it tells the owner of a lease from others")
        .next_step("use 1 to 255 bytes, unique for the time of a process: host, pid, and a random part"))
}

/// What a worker says about a failure, as a store can keep it: without NUL, and not longer than 4000 bytes.
pub fn error_text(error: &str) -> String {
    const MOST: usize = 4000;
    let end = (0..=MOST.min(error.len())).rev().find(|at| error.is_char_boundary(*at));
    error[..end.unwrap_or(0)].replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_cut_between_letters_and_keep_no_nul() {
        assert_eq!(error_text("a\0b"), "a\u{fffd}b");
        assert_eq!(error_text(&"ä".repeat(3000)).len(), 4000);
        assert_eq!(error_text(&format!("x{}", "ä".repeat(3000))).len(), 3999);
        assert_eq!(error_text(""), "");
    }

    #[test]
    fn a_worker_has_a_name() {
        assert!(check_worker("host-1").is_ok());
        for bad in ["", "a\0b", &"x".repeat(256)] {
            assert_eq!(check_worker(bad).map_err(|error| error.kind()), Err(ErrorKind::Invalid));
        }
    }
}
