//! A group of failures.

use sendoff::Uuid;
use sendoff::store::Status;
use serde::Serialize;

/// Failures with the same sink, reason and error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureView {
    /// Its id: the same for the same sink, reason and error.
    pub group: String,
    /// `dead` or `retry`.
    pub status: Status,
    /// The sink; `None` for messages that were not routed.
    pub sink: Option<String>,
    /// The reason of dead letters; `retry` for others.
    pub reason: String,
    /// The error, with placeholders for what differs.
    pub error: String,
    /// How many were seen.
    pub count: u64,
    /// Whether there may be more: not all failures were looked at.
    pub at_least: bool,
    /// When the first of them died, or was created if it is in retry, RFC 3339.
    pub first_seen: String,
    /// The same for the last.
    pub last_seen: String,
    /// One of their messages.
    pub example: Option<Uuid>,
    /// Its error, whole.
    pub example_error: Option<String>,
}
