//! What a store does for relays.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    BlockedKey, Figures, Heartbeat, Lane, LaneGrant, OwnerId, Reader, RelayCard, RowRef, SettleReport, Settlement,
    StoreHealth,
};
use crate::Result;

/// Exact numbers of rows, by table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of rows in the ready table.
    pub ready: u64,
    /// The number of rows in the waiting table that are due.
    pub due: u64,
    /// The number of rows in the waiting table that are blocked or not due yet.
    pub waiting: u64,
    /// The number of dead letters.
    pub dead: u64,
}

/// Receives signals from the database that something may have been committed.
#[async_trait]
pub trait WakeListener: Send {
    /// Waits for the next signal.
    ///
    /// # Errors
    /// When the source is broken: the caller drops it and requests a new one later; polling continues.
    async fn woken(&mut self) -> Result<()>;
}

/// What the relay needs from a store.
///
/// # Duties, for all methods
/// - Time is the database's clock; the clock of a host does not matter.
/// - No transaction stays open after a method returns.
/// - Everything works through a pooler that gives out a connection per transaction.
/// - Errors keep their source, and [`crate::Error::is_temporary`] says whether to retry.
#[async_trait]
pub trait RelayStore: Send + Sync + 'static {
    /// The number of lanes. They are numbered from 0, and relays share them.
    fn lanes(&self) -> Lane;

    /// Registers a relay with a lease that ends after `lease` unless a heartbeat renews it.
    async fn register(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()>;

    /// Renews the lease, unless it has expired or was revoked, and returns all live relays. If a lease ends later than
    /// its full length from now, the database's clock stepped back. Such a lease is invalid for other relays, but its
    /// owner may renew it.
    async fn heartbeat(&self, owner: OwnerId, lease: Duration) -> Result<Heartbeat>;

    /// Leases up to `limit` free lanes. Fails with [`crate::ErrorKind::LeaseLost`] when the relay's own lease is not
    /// valid. Two relays never hold the same lane.
    async fn acquire(&self, owner: OwnerId, limit: usize) -> Result<Vec<LaneGrant>>;

    /// Releases lanes, so that other relays can lease them immediately. Lanes that the relay does not hold are ignored.
    async fn release(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()>;

    /// Releases all lanes and removes the relay, at a clean stop; the crash counts of its lanes are reset to 0. A relay
    /// that lost its lease also calls this, as soon as it can, and continues with a new id. Such a relay has not
    /// crashed, so crashes that were counted against it on lanes that others hold by now are subtracted.
    async fn deregister(&self, owner: OwnerId) -> Result<()>;

    /// Takes the lanes from relays whose lease has run out, counts a crash on each of their lanes (and on the
    /// quarantined message that they worked on), and removes these relays, so that their settlements are rejected from
    /// then on. It never waits for a running settlement: one that outlives the lease by more than a moment is aborted,
    /// even if its process is gone. Returns how many lanes became free.
    async fn evict(&self) -> Result<u64>;

    /// Resets the crash counts and ends the quarantine of these lanes, after the owner has held them for a while
    /// without crashing.
    async fn clear_quarantine(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()>;

    /// Records durably that the owner now works only on these rows of the lane: they become the lane's [`Quarantined`],
    /// and the owner's own records on its other lanes are removed. Without rows, the owner is done with them. Rows that
    /// are recorded again keep their crashes.
    async fn quarantine(&self, owner: OwnerId, lane: Lane, rows: &[RowRef]) -> Result<()>;

    /// Whether delivered messages are kept, with the names of their sinks. If not, the relay does not list the
    /// deliveries of messages that all sinks confirmed, which is cheaper.
    fn keeps_delivered(&self) -> bool {
        true
    }

    /// A new reader, for one relay.
    fn reader(&self) -> Box<dyn Reader>;

    /// The keys in these lanes whose later messages must wait: keys with rows in the waiting table (other than
    /// scheduled or parked ones), or with dead letters that block.
    async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>>;

    /// Applies settlements, all of a lane or none of it, in one transaction with the check that the relay holds the
    /// lane with that epoch: a relay that lost the lane changes nothing. Only [`SettlePlan`](super::SettlePlan) decides
    /// what happens to each row. A row that no longer exists, or that now has the id of another message, is skipped.
    ///
    /// - Delivered: the row is removed. If a retention is configured, a copy is kept with the sinks that confirmed it, its
    ///   attempts and its history.
    /// - A ready row with other verdicts becomes one waiting or dead row per delivery, plus, if a retention is
    ///   configured, such a copy for its confirmed deliveries; a waiting row is changed or moved.
    /// - When a waiting row with a key is delivered, or dead without blocking, the next rows of its key and sink become
    ///   due. When it must wait, or is dead and blocks, the due rows behind it are blocked again.
    ///
    /// The commit must be visible when this returns. If it only contains deliveries, it need not be durable: losing it
    /// only sends messages twice. If it makes a message wait or dead, it must be durable, because the relay relies on
    /// it.
    async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport>;

    /// Releases blocked rows in these lanes that nothing blocks any more, which a concurrent action of an operator may
    /// have left behind. Returns how many became due.
    async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64>;

    /// Counts rows exactly. It may be slow on a large backlog.
    async fn backlog(&self) -> Result<Backlog>;

    /// The health of the outbox. It is cheap whatever the size of the outbox: it counts no table in full. `None` if the
    /// store does not support it.
    async fn health(&self) -> Result<Option<StoreHealth>> {
        Ok(None)
    }

    /// Writes figures of a registered relay, with the time; rows that it wrote before and that are not among them stay.
    /// They disappear with the relay: when it deregisters, or is evicted. Writing need not be durable, and must not wait
    /// for settlements. A store that keeps no figures answers [`crate::ErrorKind::Unsupported`].
    async fn write_figures(&self, owner: OwnerId, figures: &Figures) -> Result<()> {
        let _ = (owner, figures);
        Err(super::operate::unsupported("figures of relays"))
    }

    /// Sinks and topics that an operator has paused, as `(kind, name)`.
    async fn paused(&self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// One step of the regular cleaning: deletes up to `limit` rows that are past the store's configured retention
    /// (delivered messages, dead letters that block no key, idempotency keys, inbox records), and prepares storage for
    /// delivered messages. Several relays may run it at the same time. Returns how many rows were deleted; fewer than
    /// `limit` means that it is done.
    async fn clean(&self, limit: usize) -> Result<u64> {
        let _ = limit;
        Ok(0)
    }

    /// Listens for signals from other processes; `None` if the store has none.
    async fn listen(&self) -> Result<Option<Box<dyn WakeListener>>> {
        Ok(None)
    }
}
