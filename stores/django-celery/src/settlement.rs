//! What became of claimed rows.

use std::time::Duration;

/// What is to be written back about the rows of one claim, in one transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settlement {
    /// Delivered: deleted.
    pub sent: Vec<i64>,
    /// Failed, and to be tried again after a delay.
    pub failed: Vec<Later>,
    /// The broker is down: to be tried again, and nothing is charged.
    pub deferred: Vec<i64>,
    /// How long those wait.
    pub cooldown: Duration,
    /// Too early: to be tried when it is time, and nothing is charged.
    pub held: Vec<Later>,
    /// Given up.
    pub dead: Vec<Dead>,
    /// Not tried: eligible again at once.
    pub released: Vec<i64>,
}

impl Settlement {
    /// What is put off without a charge, and for how long.
    pub(crate) fn put_off(&self) -> impl Iterator<Item = (i64, Duration)> {
        let deferred = self.deferred.iter().map(|id| (*id, self.cooldown));
        deferred.chain(self.held.iter().map(|held| (held.id, held.delay)))
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// How many rows it is about.
    pub fn rows(&self) -> usize {
        self.sent.len()
            + self.failed.len()
            + self.deferred.len()
            + self.held.len()
            + self.dead.len()
            + self.released.len()
    }
}

/// A row that is to be tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct Later {
    /// Its id.
    pub id: i64,
    /// How long it waits.
    pub delay: Duration,
}

/// A row that is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// Its id.
    pub id: i64,
    /// Why, for `failure_reason`.
    pub reason: String,
}
