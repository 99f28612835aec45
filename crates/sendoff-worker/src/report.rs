//! A worker's report.

/// The result of [`Worker::run`](crate::Worker::run), in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkReport {
    /// Jobs that were completed.
    pub completed: u64,
    /// Failed attempts after which a job is tried again.
    pub retried: u64,
    /// Jobs that failed and are not tried again.
    pub failed: u64,
    /// Jobs whose lease was lost before they were marked. Another worker claims them again.
    pub lost: u64,
    /// Claimed jobs that were released unstarted when the worker stopped.
    pub released: u64,
}
