//! How a worker works.

use std::time::Duration;

use sendoff_relay::RetryPolicy;

/// What can be set on a [`Worker`](crate::Worker).
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerSettings {
    /// How long a claim holds. It is renewed after a third of it, so work may take longer; an item of a worker that
    /// vanished is done by another one after it.
    pub lease: Duration,
    /// How many items are claimed at once.
    pub batch: usize,
    /// How many items are worked on at the same time.
    pub concurrency: usize,
    /// How long to wait before looking again when nothing was due.
    pub idle_time: Duration,
    /// How long to wait before an item is tried again. How often it is tried is said by the item itself, or by the
    /// setting `item_max_attempts` in the database, and not here.
    pub retry: RetryPolicy,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            batch: 32,
            concurrency: 16,
            idle_time: Duration::from_millis(500),
            retry: RetryPolicy::default(),
        }
    }
}
