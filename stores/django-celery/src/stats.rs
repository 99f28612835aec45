//! The number of rows by state.

use std::time::{Duration, SystemTime};

/// The number of rows in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// The number of rows that a relay may claim now.
    pub eligible: u64,
    /// The number of rows that are claimed, wait for a retry, or have an unknown schema version.
    pub waiting: u64,
    /// The number of dead letters.
    pub dead: u64,
    /// The age of the oldest eligible row.
    pub oldest: Option<Duration>,
    /// The smallest id of an eligible row.
    pub first: Option<i64>,
    /// The time of the database's clock.
    pub now: SystemTime,
}
