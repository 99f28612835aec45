//! What a relay tells those who watch it.

use std::time::Duration;

use tokio::time::Instant;

/// Hears how a relay is. It is called on the relay's own tasks, so it must not block.
pub trait Monitor: Send + Sync {
    /// Four times a second, as long as the relay's loop turns: also while the broker or the database keeps it waiting.
    fn beat(&self, beat: &Beat);

    /// Whenever decisions were written.
    fn settled(&self, settled: &Settled);
}

/// How a relay stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// When this was.
    pub at: Instant,
    /// Rows that it has claimed and not settled.
    pub in_flight: usize,
    /// The broker is down, so nothing is claimed.
    pub broker_down: bool,
    /// How long the oldest decision that is not written has waited.
    pub unsettled: Option<Duration>,
    /// It was told to stop.
    pub stopping: bool,
}

/// Decisions that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// How many rows.
    pub rows: usize,
    /// How long writing took, with all tries.
    pub took: Duration,
    /// How long ago they were decided.
    pub lag: Duration,
}
