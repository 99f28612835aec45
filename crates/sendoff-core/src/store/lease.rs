//! Leases of relays.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use super::{History, Lane, RowId, RowRef};

/// The id of a relay for the lifetime of one process. It is generated at every start and is never a host name, so that
/// a restarted process is not mistaken for the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(pub Uuid);

impl OwnerId {
    /// A new random id.
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
    /// The history of the database, which the relay compares with the previous one; `None` if the store cannot tell.
    pub history: Option<History>,
}

impl Heartbeat {
    /// The owners of all valid leases, sorted.
    pub fn owners(&self) -> Vec<OwnerId> {
        self.relays.iter().map(|relay| relay.owner).collect()
    }
}

/// What a relay publishes about itself when it registers, for operators and for relays with another configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelayCard {
    /// The relay's name, such as host and process id. It is not unique.
    pub name: String,
    /// The version of the relay's program.
    pub version: String,
    /// A hash of the relay's configuration: two relays with the same hash have the same routes and policies.
    pub config: String,
    /// The relay's routes, as text from [`Routes::to_text`](super::Routes::to_text).
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
    /// The relay's id.
    pub owner: OwnerId,
    /// The hash of the relay's configuration.
    pub config: String,
    /// The relay's routes, as it published them.
    pub routes: String,
}

/// A lane that a relay just leased.
#[derive(Debug, Clone)]
pub struct LaneGrant {
    /// The number of the lane.
    pub lane: Lane,
    /// Counts the lane's changes of owner. Every settlement names it.
    pub epoch: i64,
    /// How many owners in a row vanished while they held the lane and did not come back since.
    pub crashes: u32,
    /// The messages of the lane that an owner worked on exclusively when it vanished.
    pub quarantined: Option<Quarantined>,
}

/// Messages of one lane, one of which may crash relays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The lowest number of these messages.
    pub first: i64,
    /// The highest number of these messages.
    pub last: i64,
    /// The message's id, if only one message is quarantined. The number alone may belong to another message after a
    /// change of the database's history.
    pub id: Option<RowId>,
    /// The message's sink, if only one message is quarantined; `None` when it was in the ready table.
    pub sink: Option<Arc<str>>,
    /// How many owners in a row vanished while they worked only on these messages and did not come back since.
    pub crashes: u32,
}

impl Quarantined {
    /// The quarantine of the given rows, which are in one lane; `None` without rows.
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

    /// Whether the quarantine is of one message, and this row is that message.
    pub fn is_at(&self, row_ref: &RowRef) -> bool {
        self.id.as_ref() == Some(&row_ref.id) && (self.first, &self.sink) == (row_ref.seq, &row_ref.sink)
    }

    /// Whether this row may be one of the quarantined messages.
    pub fn covers(&self, row_ref: &RowRef) -> bool {
        (self.first..=self.last).contains(&row_ref.seq)
    }

    /// Whether both quarantines are of the same rows. The number of crashes may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.first, self.last, &self.id, &self.sink) == (other.first, other.last, &other.id, &other.sink)
    }
}
