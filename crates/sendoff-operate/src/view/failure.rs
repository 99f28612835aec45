//! A group of failures.

use sendoff::Uuid;
use sendoff::store::Status;
use serde::Serialize;

/// Failures with the same sink, reason and error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureView {
    /// The id of the group: the same for the same sink, reason and error.
    pub group: String,
    /// The status of the failures: `dead` or `retry`.
    pub status: Status,
    /// The sink; `None` for messages that were not routed.
    pub sink: Option<String>,
    /// The reason of dead letters; `retry` for deliveries in retry.
    pub reason: String,
    /// The error, with placeholders for what differs between messages.
    pub error: String,
    /// The number of failures that were counted.
    pub count: u64,
    /// Whether there may be more: not all failures were looked at.
    pub at_least: bool,
    /// When the first of them died, or was created if it is in retry, RFC 3339.
    pub first_seen: String,
    /// When the last failure of the group died, or was created if it is in retry, RFC 3339.
    pub last_seen: String,
    /// The id of one message of the group.
    pub example: Option<Uuid>,
    /// The full error of the example message.
    pub example_error: Option<String>,
}
