//! What a worker did.

/// What [`Worker::run`](crate::Worker::run) did until it was stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkReport {
    /// Items that were done.
    pub completed: u64,
    /// Attempts that failed and are tried again.
    pub retried: u64,
    /// Items that failed for good.
    pub failed: u64,
    /// Items whose lease was lost before they were marked: another worker does them again.
    pub lost: u64,
    /// Items that were given back unworked at the stop.
    pub released: u64,
}
