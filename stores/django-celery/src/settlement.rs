//! What became of claimed rows.

use std::time::Duration;

/// What is to be written back about the rows of one claim, in one transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settlement {
    /// Delivered: deleted.
    pub sent: Vec<i64>,
    /// Failed, and to be tried again after a delay.
    pub failed: Vec<Failed>,
    /// The broker is down: to be tried again, and nothing is charged.
    pub deferred: Vec<i64>,
    /// How long those wait.
    pub cooldown: Duration,
    /// Given up.
    pub dead: Vec<Dead>,
    /// Not tried: eligible again at once.
    pub released: Vec<i64>,
}

impl Settlement {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// How many rows it is about.
    pub fn rows(&self) -> usize {
        self.sent.len() + self.failed.len() + self.deferred.len() + self.dead.len() + self.released.len()
    }
}

/// A row that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
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
