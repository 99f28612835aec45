//! Room: relay.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    BlockedKey, Heartbeat, Lane, LaneGrant, OwnerId, Place, Reader, RelayCard, SettleReport, Settlement, Vitals,
};
use crate::Result;

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Rows in the ready table.
    pub ready: u64,
    /// Rows in the waiting table that are due.
    pub due: u64,
    /// Rows in the waiting table that are not due yet, or held.
    pub waiting: u64,
    /// Rows in the dead letters.
    pub dead: u64,
}

/// Tells that something may have been committed: the second rung of the wake-up ladder.
#[async_trait]
pub trait WakeSource: Send {
    /// Waits for the next signal.
    ///
    /// # Errors
    /// When the source is broken: the caller drops it and asks for a new one later; polling goes on.
    async fn woken(&mut self) -> Result<()>;
}

/// What the relay asks of a store.
///
/// # Duties, for all methods
/// - Time is the database's clock; a host's clock decides nothing.
/// - No transaction stays open after a method returns.
/// - Everything works through a pooler that gives out a connection per transaction.
/// - Errors keep their source, and say with [`crate::Error::is_temporary`] whether trying again is right.
#[async_trait]
pub trait RelayStore: Send + Sync + 'static {
    /// How many lanes there are, numbered from 0. Relays share them.
    fn lanes(&self) -> Lane;

    /// Registers a relay with a lease that runs out after `lease` unless a heartbeat renews it.
    async fn enlist(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()>;

    /// Renews the lease, unless it has run out or was taken away, and tells who else is there. A lease that ends further
    /// ahead than its length, because the database's clock stepped back, counts for nobody else, but its owner may renew it.
    async fn heartbeat(&self, owner: OwnerId, lease: Duration) -> Result<Heartbeat>;

    /// Leases up to `limit` lanes that nobody holds. Fails with [`crate::ErrorKind::LeaseLost`] when the relay's own
    /// lease is not valid. Two relays never hold one lane.
    async fn acquire(&self, owner: OwnerId, limit: usize) -> Result<Vec<LaneGrant>>;

    /// Gives lanes back at once, for others to take. Lanes that it does not hold are passed over.
    async fn release(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()>;

    /// Gives everything back and strikes the relay off, at a clean stop; its lanes have no crashes any more. A relay that
    /// lost its lease calls it, too, as soon as it can, and goes on under another name: it has not crashed, so whatever was
    /// counted against it on lanes that others hold by now is taken back.
    async fn retire(&self, owner: OwnerId) -> Result<()>;

    /// Takes the lanes from relays whose lease has run out, counts a crash on each of their lanes (and on the suspect that
    /// they were working on), and strikes these relays off, so that their settlements are refused from then on. Never waits
    /// for a settlement under way: one that outlives the lease by more than a moment is ended, whatever became of the
    /// process that began it. Returns how many lanes became free.
    async fn evict(&self) -> Result<u64>;

    /// The owner has lived with these lanes for a while: they have no crashes and no suspect any more.
    async fn absolve(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()>;

    /// Notes, durably, that the owner now works on these rows of the lane and on nothing else: they are the lane's
    /// [`Suspect`], and its other lanes have none that it has noted itself. No rows: it is done with them. Rows that are
    /// noted again keep their crashes.
    async fn suspect(&self, owner: OwnerId, lane: Lane, rows: &[Place]) -> Result<()>;

    /// A reader for one relay.
    fn reader(&self) -> Box<dyn Reader>;

    /// The keys in these lanes whose followers have to wait: those with rows in the waiting table (other than scheduled
    /// or parked ones), or with dead letters that block.
    async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>>;

    /// Carries out settlements, all of a lane or none of it, in one transaction with the check that the relay holds the
    /// lane with that epoch: a relay that lost it changes nothing. What becomes of each row is said by
    /// [`SettlePlan`](super::SettlePlan), and by nothing else. A row is named by its place and its id: one that is not
    /// there any more, or is another message's by now, is passed over.
    ///
    /// - Delivered: the row goes (to the delivered messages where a retention is configured).
    /// - A ready row with other legs becomes one waiting or dead row a leg, and where a retention is configured one delivered
    ///   row for each leg that is; a waiting row is changed or moved.
    /// - When a waiting row with a key is delivered, or dead without blocking: the next rows of its key and leg become
    ///   due. When it has to wait or dies blocking: those behind it that were due are held again.
    ///
    /// It must be visible when this returns. A commit of nothing but deliveries need not be durable, since losing it only
    /// sends messages twice; one that makes a message wait, or kills it, must be: the relay goes by it.
    async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport>;

    /// Lets go of held rows in these lanes that nothing holds any more, which an operator's action at the same moment
    /// may have left behind. Returns how many became due.
    async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64>;

    /// Counts, exactly. May be slow on a large backlog.
    async fn backlog(&self) -> Result<Backlog>;

    /// How the outbox is, at little cost whatever its size: no table is counted. `None` from a store that cannot tell.
    async fn vitals(&self) -> Result<Option<Vitals>> {
        Ok(None)
    }

    /// Sinks and topics that an operator has paused, as `(kind, name)`.
    async fn paused(&self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// A little of the regular cleaning: deletes up to `limit` rows that are older than the store's configured windows
    /// (delivered messages, dead letters that block no key, idempotency keys, notes of consumers), and prepares what
    /// delivered messages will need. Several relays may do it at once. Returns how many rows went; fewer than `limit` means that it is clean.
    async fn clean(&self, limit: usize) -> Result<u64> {
        let _ = limit;
        Ok(0)
    }

    /// A source of wake-ups from other processes; `None` where the store has none.
    async fn listen(&self) -> Result<Option<Box<dyn WakeSource>>> {
        Ok(None)
    }
}
