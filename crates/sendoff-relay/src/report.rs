//! Reports of a run, counted as results are written.

use sendoff::store::Backlog;

/// The number of results that a relay wrote until it stopped. Each result is of one delivery: a message that goes to
/// two sinks has two deliveries, and a delivery that fails twice before it is confirmed has three results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Deliveries that sinks confirmed.
    pub delivered: u64,
    /// Failed attempts that were charged and after which a delivery is tried again, as in `sendoff_retried_total`.
    pub retried: u64,
    /// How often a delivery was put back without an attempt, because its sink was down or crowded, or its sink or topic
    /// was paused. Deliveries that are blocked behind a message with the same key do not count.
    pub deferred: u64,
    /// Deliveries that became dead letters, as in `sendoff_dead_lettered_total`.
    pub dead: u64,
}

impl RunReport {
    /// The number of all results.
    pub fn processed(&self) -> u64 {
        self.delivered + self.retried + self.deferred + self.dead
    }
}

/// The result of a one-shot run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnceReport {
    /// The results that the relay wrote.
    pub run: RunReport,
    /// The rows that remain in the store.
    pub remaining: Backlog,
}
