//! Reports of a relay to a monitor.

use std::time::Duration;

use tokio::time::Instant;

/// Receives reports about a relay. The relay calls it on its own tasks, so it must not block.
pub trait Monitor: Send + Sync {
    /// Called four times per second while the relay's loop runs, also while it waits for the broker or the database.
    fn beat(&self, beat: &Beat);

    /// Called after results were written.
    fn settled(&self, settled: &Settled);
}

/// The state of a relay at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// When this state was reported.
    pub at: Instant,
    /// The number of rows that the relay has claimed and not settled.
    pub in_flight: usize,
    /// Whether the broker is down, so that nothing is claimed.
    pub broker_down: bool,
    /// How long the oldest result has waited to be written.
    pub unsettled: Option<Duration>,
    /// Whether the relay is stopping.
    pub stopping: bool,
}

/// Results that were written to the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// The number of rows.
    pub rows: usize,
    /// How long it took to write the results, including retries.
    pub took: Duration,
    /// How long the oldest result had waited when all were written.
    pub lag: Duration,
}
