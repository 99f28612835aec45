//! How an outbox is, at little cost.

use std::time::{Duration, SystemTime};

use super::Lane;

/// How an outbox is: for gauges and probes, asked every few seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Vitals {
    /// The time by the database's clock.
    pub now: SystemTime,
    /// How many messages are ready: exact below [`Vitals::BOUND`], else about.
    pub ready: u64,
    /// How many messages wait, as exact.
    pub waiting: u64,
    /// How many messages are dead, as exact.
    pub dead: u64,
    /// For how long the oldest waiting message has been due; `None` when none is.
    pub oldest_due: Option<Duration>,
    /// The first ready message of each lane that has one. A store that cannot look at lanes one by one leaves out those
    /// whose first message is not among its oldest.
    pub heads: Vec<LaneHead>,
}

/// The first ready message of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneHead {
    /// The lane.
    pub lane: Lane,
    /// The message's place in it.
    pub seq: i64,
    /// How long ago its transaction began.
    pub age: Duration,
    /// Whether a relay with a valid lease holds the lane.
    pub held: bool,
}

impl Vitals {
    /// Up to so many rows may be looked at to tell how many there are; beyond, a store estimates.
    pub const BOUND: u32 = 10_000;

    /// How old the oldest ready message is; `None` when none is.
    pub fn oldest_ready(&self) -> Option<Duration> {
        self.heads.iter().map(|head| head.age).max()
    }
}
