//! The result of a retry.

use serde::Serialize;

/// The result of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RetryView {
    /// The number of deliveries that are due now.
    pub retried: u64,
}
