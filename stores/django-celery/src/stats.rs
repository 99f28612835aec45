//! How many rows there are.

use std::time::{Duration, SystemTime};

/// The tables in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Rows that a relay may claim now.
    pub eligible: u64,
    /// Rows that are on their way, back off, or have a schema version that is not known.
    pub waiting: u64,
    /// Dead letters.
    pub dead: u64,
    /// How long the oldest eligible row has been there.
    pub oldest: Option<Duration>,
    /// The smallest number of an eligible row.
    pub first: Option<i64>,
    /// The time by the database's clock.
    pub now: SystemTime,
}
