//! The settings of a worker.

use std::time::Duration;

use sendoff_relay::RetryPolicy;

/// Settings of a [`Worker`](crate::Worker).
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerSettings {
    /// How long a claim is valid. The worker renews it after a third of this time, so a job may take longer. If a
    /// worker is gone, another one claims its jobs after this time.
    pub lease: Duration,
    /// The largest number of jobs per claim.
    pub batch: usize,
    /// The number of jobs that run at the same time.
    pub concurrency: usize,
    /// How long to wait before the next claim when no job was due.
    pub idle_time: Duration,
    /// The delays between attempts of a job. The number of attempts is set in the job, or by the setting
    /// `job_max_attempts` of the store, not here.
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
