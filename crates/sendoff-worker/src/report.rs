//! A worker's report.

/// The result of [`Worker::run`](crate::Worker::run).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkReport {
    /// Completed jobs.
    pub completed: u64,
    /// Attempts that failed and are tried again.
    pub retried: u64,
    /// Jobs that failed and are not tried again.
    pub failed: u64,
    /// Jobs whose lease was lost before they were marked: another worker does them again.
    pub lost: u64,
    /// Jobs that were given back without work when the worker stopped.
    pub released: u64,
}
