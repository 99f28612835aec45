//! Reports of a run, counted as results are written.

use sendoff::store::Backlog;

/// The results that a relay wrote until it stopped. One of a delivery each: a message that goes to two sinks has two
/// deliveries, and a delivery that fails twice before it is confirmed has three results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Deliveries that their sinks confirmed.
    pub delivered: u64,
    /// Failed attempts after which a delivery is tried again: the charged ones, as in `sendoff_retried_total`.
    pub retried: u64,
    /// How often a delivery was put back without an attempt: its sink was down or crowded, or it or its topic was paused.
    /// Deliveries that are blocked behind another one of their key do not count.
    pub deferred: u64,
    /// Deliveries that became dead letters, as in `sendoff_dead_lettered_total`.
    pub dead: u64,
}

impl RunReport {
    /// All results.
    pub fn processed(&self) -> u64 {
        self.delivered + self.retried + self.deferred + self.dead
    }
}

/// The result of a one-shot run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnceReport {
    /// The results that it wrote.
    pub run: RunReport,
    /// What remains in the store, in rows.
    pub remaining: Backlog,
}
