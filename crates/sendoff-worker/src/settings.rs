//! The settings of a worker.

use std::time::Duration;

use sendoff_relay::RetryPolicy;

/// Settings of a [`Worker`](crate::Worker).
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerSettings {
    /// How long a claim is valid. It is renewed after a third of this time, so work may take longer. When a worker has
    /// vanished, another one does its job after this time.
    pub lease: Duration,
    /// How many jobs one claim takes.
    pub batch: usize,
    /// How many jobs are worked on at the same time.
    pub concurrency: usize,
    /// How long to wait before the next claim when nothing was due.
    pub idle_time: Duration,
    /// How long to wait before a job is tried again. The number of attempts is set in the job, or by the
    /// setting `job_max_attempts` of the store, not here.
    pub retry: RetryPolicy,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(300),
            batch: 32,
            concurrency: 16,
            idle_time: Duration::from_millis(500),
            retry: RetryPolicy::default(),
        }
    }
}
