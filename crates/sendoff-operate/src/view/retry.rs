//! What a retry did.

use serde::Serialize;

/// How many dead letters were brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RetryView {
    /// Legs that are due again.
    pub retried: u64,
}
