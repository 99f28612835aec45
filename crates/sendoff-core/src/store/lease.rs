//! Leases of relays.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use super::{History, Lane, RowId, RowRef};

/// The id of a relay for the lifetime of one process. It is generated at every start and never a host name, so that a
/// restarted process is not mistaken for the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(pub Uuid);

impl OwnerId {
    /// A new id.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The result of a heartbeat.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat {
    /// Whether the lease was still valid and is renewed. If not, the relay has lost its lanes.
    pub alive: bool,
    /// All relays with a valid lease, sorted by owner; every relay that asks at the same time gets the same list.
    pub relays: Vec<LiveRelay>,
    /// The history of the database, which the relay compares with the previous one; `None` if the store does not know
    /// it.
    pub history: Option<History>,
}

impl Heartbeat {
    /// The owners of all valid leases, sorted.
    pub fn owners(&self) -> Vec<OwnerId> {
        self.relays.iter().map(|relay| relay.owner).collect()
    }
}

/// What a relay publishes about itself when it registers, for people and for relays with another configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelayCard {
    /// Its name, such as host and process id. It is not unique.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// A hash of its routes: two relays with the same one have the same routes.
    pub config: String,
    /// Its routes, as [`Routes::to_text`](super::Routes::to_text) writes them.
    pub routes: String,
}

impl RelayCard {
    /// A card with only a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// A relay with a valid lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRelay {
    /// Its id.
    pub owner: OwnerId,
    /// The hash of its routes.
    pub config: String,
    /// Its routes, as it wrote them.
    pub routes: String,
}

/// A newly leased lane.
#[derive(Debug, Clone)]
pub struct LaneGrant {
    /// The lane.
    pub lane: Lane,
    /// Counts its changes of owner; part of every settlement.
    pub epoch: i64,
    /// How many owners in a row vanished while they held it and did not come back since.
    pub crashes: u32,
    /// The messages that an owner worked on exclusively when it vanished.
    pub quarantined: Option<Quarantined>,
}

/// Messages of one lane, one of which may crash relays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The lowest of their numbers.
    pub first: i64,
    /// The highest of their numbers.
    pub last: i64,
    /// The id, if it is one message: after a change of the database's history, another message may have its number.
    pub id: Option<RowId>,
    /// Its sink, if it is one message; `None` when it was in the ready table.
    pub sink: Option<Arc<str>>,
    /// How many owners in a row vanished while they worked on only these and did not come back since.
    pub crashes: u32,
}

impl Quarantined {
    /// The quarantine of these rows of one lane; `None` without rows.
    pub fn of(rows: &[RowRef]) -> Option<Self> {
        let first = rows.iter().map(|row| row.seq).min()?;
        let last = rows.iter().map(|row| row.seq).max()?;
        let alone = if let [row] = rows { Some(row) } else { None };
        Some(Self {
            first,
            last,
            id: alone.map(|row| row.id.clone()),
            sink: alone.and_then(|row| row.sink.clone()),
            crashes: 0,
        })
    }

    /// Whether it is one message, and this row is it.
    pub fn is_at(&self, row_ref: &RowRef) -> bool {
        self.id.as_ref() == Some(&row_ref.id) && (self.first, &self.sink) == (row_ref.seq, &row_ref.sink)
    }

    /// Whether this row may be one of them.
    pub fn covers(&self, row_ref: &RowRef) -> bool {
        (self.first..=self.last).contains(&row_ref.seq)
    }

    /// Whether these are the same rows, whatever the number of crashes.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.first, self.last, &self.id, &self.sink) == (other.first, other.last, &other.id, &other.sink)
    }
}
