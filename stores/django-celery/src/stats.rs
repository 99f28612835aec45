//! How many rows there are.

use std::time::Duration;

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
}
