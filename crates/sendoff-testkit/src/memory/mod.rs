//! A store in memory: the reference implementation of `sendoff::store`, and the ground of simulations.
//!
//! It keeps every promise that a database does, in plain maps that can be read in an hour. Nothing is durable.
//!
//! - **Time** is tokio's: a paused runtime drives leases, schedules and retries. [`MemoryStore::shift_clock`] moves it
//!   against the hosts' clocks.
//! - **Transactions** take their sequence numbers when they emit and show their rows when they commit, so that a
//!   straggler is one transaction held open.
//! - **Faults** are made to order with [`MemoryStore::faults`].

mod act;
mod clock;
mod content;
mod dedup;
mod emit;
mod faults;
mod follow;
mod lease;
mod migrate;
mod operate;
mod overview;
mod read;
mod relay;
mod settle;
mod snapshot;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use sendoff::Outbox;
use sendoff::store::{AuditView, Lane, OwnerId};
use tokio::sync::Notify;

use clock::Clock;
pub use emit::{MemoryAdapter, MemoryTransaction};
pub use faults::{Faults, Verb};
pub use read::MemoryReader;
pub use snapshot::{Left, LeftIn, Snapshot};
use tables::Tables;

/// How many lanes there are of each kind.
#[derive(Debug, Clone, Copy)]
struct Lanes {
    /// Of messages with a key, or with neither a key nor a priority.
    common: Lane,
    /// Of urgent messages, and as many of idle ones, behind the common ones.
    priority: Lane,
}

impl Lanes {
    const USUAL: Self = Self {
        common: 64,
        priority: 8,
    };

    fn count(self) -> Lane {
        self.common + 2 * self.priority
    }
}

/// A store in memory. Clones share everything, as connections to one database do.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    tables: Mutex<Tables>,
    clock: Clock,
    faults: Faults,
    outbox: Outbox,
    lanes: Lanes,
    keep_delivered: bool,
    dead_retention: Option<Duration>,
    /// Notified when a transaction ends, for those that wait for an idempotency key it took.
    ended: Notify,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// A store with other settings.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder {
            lanes: Lanes::USUAL,
            keep_delivered: false,
            dead_retention: None,
            dedup_window: Duration::from_secs(7 * 24 * 60 * 60),
            began: SystemTime::now(),
            outbox: Outbox::new(),
        }
    }

    /// The outbox to emit with, into a [`MemoryTransaction`].
    pub fn outbox(&self) -> &Outbox {
        &self.shared.outbox
    }

    /// The faults that are made to order.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// What time the store thinks it is.
    pub fn now(&self) -> SystemTime {
        clock::time(self.shared.clock.now())
    }

    /// Moves the store's clock forward, as an administrator may who sets a server's clock. Timers of the process are
    /// not touched.
    pub fn shift_clock(&self, by: Duration) {
        self.shared.clock.shift(by);
    }

    /// Moves the store's clock back.
    pub fn shift_clock_back(&self, by: Duration) {
        self.shared.clock.shift_back(by);
    }

    /// Takes the lanes from every relay at once, whatever its lease says, and counts it as a crash. Returns how many
    /// lanes became free.
    pub fn evict_now(&self) -> u64 {
        self.tables().evict(clock::Micros::MAX)
    }

    /// Empties the ready table and lets numbers begin again, as in a database that was restored or truncated.
    pub fn set_back(&self) {
        let mut tables = self.tables();
        tables.ready.clear();
        tables.next_seq = 1;
    }

    /// Another server with the same rows answers from now on.
    pub fn replace_server(&self) {
        self.tables().history += 1;
    }

    /// Who holds which lane, to go back to later.
    pub fn leases(&self) -> Leases {
        let tables = self.tables();
        Leases(tables.relays.clone(), tables.lanes.clone())
    }

    /// Goes back to these leases, as a standby does that had got nothing since.
    pub fn restore_leases(&self, leases: Leases) {
        let mut tables = self.tables();
        (tables.relays, tables.lanes) = (leases.0, leases.1);
    }

    /// What operators did, oldest first.
    pub fn audits(&self) -> Vec<AuditView> {
        self.tables().audits.clone()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // A panic of a test while it held the lock is reported by that test; the tables change in whole steps only.
        self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who held which lane at some moment.
#[derive(Debug)]
pub struct Leases(BTreeMap<OwnerId, tables::Lease>, Vec<tables::LaneRow>);

/// Sets up a [`MemoryStore`].
#[must_use]
pub struct MemoryStoreBuilder {
    lanes: Lanes,
    keep_delivered: bool,
    dead_retention: Option<Duration>,
    dedup_window: Duration,
    began: SystemTime,
    outbox: Outbox,
}

impl MemoryStoreBuilder {
    /// How many lanes there are: `common` ones, and `priority` ones each for urgent and for idle messages; 64 and 8 unless
    /// set. Few make a simulation quick, and let more messages meet in one.
    pub fn lanes(mut self, common: Lane, priority: Lane) -> Self {
        self.lanes = Lanes { common, priority };
        self
    }

    /// Keeps delivered messages, as a store with a retention does.
    pub fn keep_delivered(mut self) -> Self {
        self.keep_delivered = true;
        self
    }

    /// How long dead letters are kept; for ever unless set.
    pub fn dead_retention(mut self, retention: Duration) -> Self {
        self.dead_retention = Some(retention);
        self
    }

    /// How long an idempotency key is remembered; 7 days unless set.
    pub fn dedup_window(mut self, window: Duration) -> Self {
        self.dedup_window = window;
        self
    }

    /// What time it is at first; this machine's time unless set. A simulation that is to repeat itself sets it.
    pub fn began(mut self, at: SystemTime) -> Self {
        self.began = at;
        self
    }

    /// The outbox to emit with, for other limits or hooks.
    pub fn outbox(mut self, outbox: Outbox) -> Self {
        self.outbox = outbox;
        self
    }

    /// The store.
    pub fn build(self) -> MemoryStore {
        MemoryStore {
            shared: Arc::new(Shared {
                tables: Mutex::new(Tables::new(self.dedup_window, self.lanes)),
                clock: Clock::new(self.began),
                faults: Faults::default(),
                outbox: self.outbox,
                lanes: self.lanes,
                keep_delivered: self.keep_delivered,
                dead_retention: self.dead_retention,
                ended: Notify::new(),
            }),
        }
    }
}
