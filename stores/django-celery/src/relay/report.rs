//! The results of a run of the relay.

use crate::Settlement;

/// The number of rows with each result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows that were sent, and confirmed by the broker.
    pub published: u64,
    /// Rows that failed and will be tried again.
    pub failed: u64,
    /// Rows that became dead letters.
    pub dead: u64,
    /// Rows that were deferred because the broker is down.
    pub deferred: u64,
    /// Rows that were held because their task is not due yet.
    pub held: u64,
    /// Rows that were released without an attempt.
    pub released: u64,
}

impl Report {
    /// Counts a settlement.
    pub(super) fn add(&mut self, settlement: &Settlement) {
        self.published += settlement.sent.len() as u64;
        self.failed += settlement.failed.len() as u64;
        self.dead += settlement.dead.len() as u64;
        self.deferred += settlement.deferred.len() as u64;
        self.held += settlement.held.len() as u64;
        self.released += settlement.released.len() as u64;
    }
}
