//! What a run did, counted in legs.

use sendoff::store::Backlog;

/// What a relay did until it stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Confirmed by their sinks.
    pub delivered: u64,
    /// Put back, to be tried again.
    pub retried: u64,
    /// Sent to the dead letters.
    pub dead: u64,
}

impl RunReport {
    /// All that it decided about.
    pub fn processed(&self) -> u64 {
        self.delivered + self.retried + self.dead
    }
}

/// What a one-shot run did, and what it left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnceReport {
    /// What it did.
    pub run: RunReport,
    /// What is still there.
    pub remaining: Backlog,
}
