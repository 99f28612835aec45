//! What a relay has done.

use crate::Settlement;

/// How many rows met which end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Sent, and confirmed by the broker.
    pub published: u64,
    /// Failed, and to be tried again.
    pub failed: u64,
    /// Given up.
    pub dead: u64,
    /// Put off because the broker is down.
    pub deferred: u64,
    /// Kept until it is time.
    pub held: u64,
    /// Given back without having been tried.
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
