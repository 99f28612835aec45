//! The result of a retry.

use serde::Serialize;

/// How many dead letters were retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RetryView {
    /// Deliveries that are due now.
    pub retried: u64,
}
