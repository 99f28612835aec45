//! The health of an outbox, which a store reads cheaply.

use std::time::{Duration, SystemTime};

use super::Lane;

/// The health of an outbox, for gauges and probes. It is queried every few seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreHealth {
    /// The time of the database's clock.
    pub now: SystemTime,
    /// The number of ready messages: exact below [`StoreHealth::BOUND`], otherwise an estimate.
    pub ready: u64,
    /// The number of rows in the waiting table: exact below [`StoreHealth::BOUND`], otherwise an estimate.
    pub waiting: u64,
    /// The number of dead letters: exact below [`StoreHealth::BOUND`], otherwise an estimate.
    pub dead: u64,
    /// How long the oldest waiting row has been due; `None` when no row is due.
    pub oldest_due: Option<Duration>,
    /// The first ready message of each lane that has one. A store that cannot query lanes one by one leaves out lanes
    /// whose first message is not among the oldest messages.
    pub heads: Vec<LaneHead>,
    /// A ready row that no relay reads. For a store that cannot prevent such rows.
    pub stray: Option<Stray>,
}

/// A ready row that no relay reads: its lane does not exist, or its number is below the first one. Only the owner of the
/// tables can write it, by bypassing the trigger that assigns lane and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stray {
    /// The lane in the row.
    pub lane: i64,
    /// The row's number.
    pub seq: i64,
    /// How long ago the transaction of the row began.
    pub age: Duration,
}

/// The first ready message of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneHead {
    /// The lane.
    pub lane: Lane,
    /// The message's number.
    pub seq: i64,
    /// How long ago the message's transaction began.
    pub age: Duration,
    /// Whether a relay with a valid lease holds the lane.
    pub held: bool,
}

impl StoreHealth {
    /// A store counts up to this many rows exactly. Beyond, it estimates.
    pub const BOUND: u32 = 10_000;

    /// The age of the oldest ready message, including a stray one; `None` when no message is ready.
    pub fn oldest_ready(&self) -> Option<Duration> {
        let heads = self.heads.iter().map(|head| head.age);
        heads.chain(self.stray.map(|stray| stray.age)).max()
    }
}
