//! What a simulation needs to know of a store, and a failover that loses the last commits.

use std::sync::Arc;

use sendoff::Uuid;
use sendoff::store::{DeadReason, Lane, OwnerId, RowRef, Table};

use super::MemoryStore;
use super::clock::Micros;
use super::tables::{Tables, WaitState};

/// Everything that a store held at some moment, as a standby has it that got nothing since.
pub struct Snapshot(Box<Tables>);

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

/// Where a row is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftIn {
    /// In the ready table.
    Ready,
    /// In the waiting table.
    Waiting {
        /// Its state, in the word of the table.
        state: &'static str,
        /// In how many microseconds it is due, below zero if it is; `None` while it is held.
        due_in: Option<i64>,
    },
    /// In the dead letters.
    Dead {
        /// Why.
        reason: DeadReason,
        /// Whether it holds up its key.
        blocks: bool,
    },
}

/// A row that is not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its message.
    pub id: Uuid,
    /// Its lane.
    pub lane: Lane,
    /// Its number.
    pub seq: i64,
    /// Its sink; empty if it is not routed.
    pub sink: Arc<str>,
    /// Its key.
    pub key: Option<String>,
    /// Where it is.
    pub is_in: LeftIn,
}

impl MemoryStore {
    /// What it holds now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(Box::new(self.tables().clone()))
    }

    /// A standby takes over that has got nothing since the snapshot: what was committed after it is gone, numbers and
    /// leases go back, and another server answers. Transactions that are open have to be rolled back by the caller.
    pub fn fail_over(&self, snapshot: Snapshot) {
        let mut tables = self.tables();
        let history = tables.history + 1;
        *tables = *snapshot.0;
        tables.history = history;
    }

    /// Whether a relay holds a lane with this epoch and a lease that is valid.
    pub fn holds(&self, owner: OwnerId, lane: Lane, epoch: i64) -> bool {
        let now = self.shared.clock.now();
        self.tables().holds(owner, lane, epoch, now)
    }

    /// Whether a relay has a lease that is valid.
    pub fn is_leased(&self, owner: OwnerId) -> bool {
        let now = self.shared.clock.now();
        self.tables().has_lease(owner, now)
    }

    /// Who holds a lane, whatever became of its lease.
    pub fn owner_of(&self, lane: Lane) -> Option<OwnerId> {
        self.tables().lanes.get(usize::from(lane)).and_then(|row| row.owner)
    }

    /// The relays that are registered, whatever became of their leases.
    pub fn registered(&self) -> Vec<OwnerId> {
        self.tables().relays.keys().copied().collect()
    }

    /// Whether this very row is in its table.
    pub fn has_row(&self, row_ref: &RowRef) -> bool {
        let tables = self.tables();
        let id = row_ref.id.uuid();
        match row_ref.table {
            Table::Ready => {
                let row = tables.ready.get(&(row_ref.lane, row_ref.seq));
                row.is_some_and(|content| content.id == id)
            }
            Table::Waiting => {
                let sink = row_ref.sink.clone().unwrap_or_default();
                tables.waiting.contains_key(&(row_ref.lane, row_ref.seq, sink, id))
            }
        }
    }

    /// How many attempts the waiting row of this message has, for a delivery or for the one that its place names.
    pub fn attempts(&self, row_ref: &RowRef, sink: Option<&Arc<str>>) -> Option<u32> {
        let sink = sink.or(row_ref.sink.as_ref()).cloned().unwrap_or_default();
        let tables = self.tables();
        let row = tables
            .waiting
            .get(&(row_ref.lane, row_ref.seq, sink, row_ref.id.uuid()));
        row.map(|row| row.attempts)
    }

    /// All that is not delivered: ready, then waiting, then dead, each by lane and number.
    pub fn left(&self) -> Vec<Left> {
        let now = self.shared.clock.now();
        let tables = self.tables();
        let ready = tables.ready.iter().map(|((lane, seq), content)| Left {
            id: content.id,
            lane: *lane,
            seq: *seq,
            sink: Arc::default(),
            key: content.key.clone(),
            is_in: LeftIn::Ready,
        });
        let waiting = tables.waiting.iter().map(|((lane, seq, sink, id), row)| Left {
            id: *id,
            lane: *lane,
            seq: *seq,
            sink: sink.clone(),
            key: row.content.key.clone(),
            is_in: LeftIn::Waiting {
                state: row.state.as_str(),
                due_in: row.due_at.map(|due: Micros| due.saturating_sub(now)),
            },
        });
        let dead = tables.dead.iter().map(|((lane, seq, sink, id), row)| Left {
            id: *id,
            lane: *lane,
            seq: *seq,
            sink: sink.clone(),
            key: row.content.key.clone(),
            is_in: LeftIn::Dead {
                reason: row.reason,
                blocks: row.blocks,
            },
        });
        ready.chain(waiting).chain(dead).collect()
    }
}

impl Tables {
    pub(super) fn holds(&self, owner: OwnerId, lane: Lane, epoch: i64, now: Micros) -> bool {
        let row = self.lanes.get(usize::from(lane));
        self.has_lease(owner, now) && row.is_some_and(|row| row.owner == Some(owner) && row.epoch == epoch)
    }
}

impl Left {
    /// Whether it waits behind another of its key, without a time of its own.
    pub fn is_held(&self) -> bool {
        let held = WaitState::Blocked.as_str();
        matches!(self.is_in, LeftIn::Waiting { state, due_in: None } if state == held)
    }
}
