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
    /// All relays with a valid lease, sorted; the same list for everybody who asks at the same time.
    pub relays: Vec<OwnerId>,
    /// Which history the database has, for the relay to compare with the one before; `None` where the store cannot tell.
    pub history: Option<History>,
}

/// A lane that was just leased.
#[derive(Debug, Clone)]
pub struct LaneGrant {
    /// Which.
    pub lane: Lane,
    /// Counts its changes of hands; goes into every settlement.
    pub epoch: i64,
    /// How many owners in a row vanished while they held it.
    pub crashes: u32,
    /// The message that the last owner was working on alone when it vanished.
    pub suspect: Option<Suspect>,
}

/// A message that may be what makes relays crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// Its place in the lane.
    pub seq: i64,
    /// Its id: after a change of the database's history another message may have its place.
    pub id: RowId,
    /// Its leg; `None` when it was in the ready table.
    pub leg: Option<Arc<str>>,
    /// How many owners in a row vanished while they worked on it alone.
    pub crashes: u32,
}

impl Suspect {
    /// Whether the row at this place is the one.
    pub fn is_at(&self, place: &Place) -> bool {
        (self.seq, &self.id, &self.leg) == (place.seq, &place.id, &place.leg)
    }
}
