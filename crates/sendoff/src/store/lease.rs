//! What relays hold, and for how long.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use super::{History, Lane, Place, RowId};

/// A relay, for the time of one process: made anew at every start, never a host's name, so that a restarted process
/// cannot be taken for the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(pub Uuid);

impl OwnerId {
    /// A new one.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a heartbeat found.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat {
    /// Whether the lease was still there and is renewed. When not, everything that hangs on it is lost.
    pub alive: bool,
    /// All relays with a valid lease, sorted by owner; the same list for everybody who asks at the same time.
    pub relays: Vec<LiveRelay>,
    /// Which history the database has, for the relay to compare with the one before; `None` where the store cannot tell.
    pub history: Option<History>,
}

impl Heartbeat {
    /// The owners of all valid leases, sorted.
    pub fn owners(&self) -> Vec<OwnerId> {
        self.relays.iter().map(|relay| relay.owner).collect()
    }
}

/// What a relay tells of itself when it enlists: for people, and for relays with another configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelayCard {
    /// Its name, such as host and process id. It identifies nothing.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// A hash of its routes: two relays with the same one have the same routes.
    pub config: String,
    /// Its routes, as [`Routes::to_text`](super::Routes::to_text) writes them.
    pub routes: String,
}

impl RelayCard {
    /// A relay of this name that tells nothing else.
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
    /// Who it is.
    pub owner: OwnerId,
    /// The hash of its routes.
    pub config: String,
    /// Its routes, as it wrote them.
    pub routes: String,
}

/// A lane that was just leased.
#[derive(Debug, Clone)]
pub struct LaneGrant {
    /// Which.
    pub lane: Lane,
    /// Counts its changes of hands; goes into every settlement.
    pub epoch: i64,
    /// How many owners in a row vanished while they held it, and have not shown since that they live.
    pub crashes: u32,
    /// The messages that an owner was working on, and on nothing else, when it vanished.
    pub suspect: Option<Suspect>,
}

/// Messages of one lane of which one may be what makes relays crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// The lowest and the highest of their numbers.
    pub first: i64,
    /// See `first`.
    pub last: i64,
    /// The id, if it is one message: after a change of the database's history another message may have its number.
    pub id: Option<RowId>,
    /// Its leg, if it is one message; `None` when it was in the ready table.
    pub leg: Option<Arc<str>>,
    /// How many owners in a row vanished while they worked on them alone, and have not shown since that they live.
    pub crashes: u32,
}

impl Suspect {
    /// These rows of one lane; `None` for none.
    pub fn of(rows: &[Place]) -> Option<Self> {
        let first = rows.iter().map(|row| row.seq).min()?;
        let last = rows.iter().map(|row| row.seq).max()?;
        let alone = if let [row] = rows { Some(row) } else { None };
        Some(Self {
            first,
            last,
            id: alone.map(|row| row.id.clone()),
            leg: alone.and_then(|row| row.leg.clone()),
            crashes: 0,
        })
    }

    /// Whether it is one message, and the row at this place is it.
    pub fn is_at(&self, place: &Place) -> bool {
        self.id.as_ref() == Some(&place.id) && (self.first, &self.leg) == (place.seq, &place.leg)
    }

    /// Whether the row at this place may be one of them.
    pub fn covers(&self, place: &Place) -> bool {
        (self.first..=self.last).contains(&place.seq)
    }

    /// Whether these are the same rows, however often owners vanished.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.first, self.last, &self.id, &self.leg) == (other.first, other.last, &other.id, &other.leg)
    }
}
