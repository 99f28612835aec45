//! The results of claimed rows.

use std::time::Duration;

/// The results of one claim's rows, which are written in one transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settlement {
    /// Rows that were delivered: they are deleted.
    pub sent: Vec<i64>,
    /// Rows that failed: they are tried again after a delay.
    pub failed: Vec<Later>,
    /// Rows that are tried again without a charged attempt, because the broker is down.
    pub deferred: Vec<i64>,
    /// How long deferred rows wait.
    pub cooldown: Duration,
    /// Rows whose task is not due yet: they are tried later, and no attempt is charged.
    pub held: Vec<Later>,
    /// Rows that become dead letters.
    pub dead: Vec<Dead>,
    /// Rows that were not tried: they are eligible again immediately.
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

    /// The number of rows with a result.
    pub fn rows(&self) -> usize {
        self.sent.len()
            + self.failed.len()
            + self.deferred.len()
            + self.held.len()
            + self.dead.len()
            + self.released.len()
    }
}

/// A row that is tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct Later {
    /// The id of the row.
    pub id: i64,
    /// How long the row waits.
    pub delay: Duration,
}

/// A row that becomes a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// The id of the row.
    pub id: i64,
    /// The reason, for the column `failure_reason`.
    pub reason: String,
}
