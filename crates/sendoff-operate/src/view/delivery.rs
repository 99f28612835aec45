//! One delivery: one message for one sink.

use sendoff::envelope::rfc3339;
use sendoff::store::{Status, Stored};
use serde::{Deserialize, Serialize};

/// The delivery of a message to one sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeliveryView {
    /// The sink; `None` when the message is not routed yet.
    pub sink: Option<String>,
    /// The status of the delivery.
    pub status: Status,
    /// The state of a waiting delivery, or the reason of a dead one, as a code.
    pub detail: Option<String>,
    /// The number of failed attempts.
    pub attempts: i64,
    /// The last error of the delivery.
    pub last_error: Option<String>,
    /// When the delivery is due, RFC 3339; `None` for one that is ready, blocked, or ended.
    pub due_at: Option<String>,
    /// When the delivery was confirmed or died, RFC 3339.
    pub ended_at: Option<String>,
    /// The failed attempts, oldest first.
    pub history: Vec<TriedView>,
}

/// One attempt that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriedView {
    /// When the attempt failed, RFC 3339.
    pub at: Option<String>,
    /// The sink of the attempt.
    pub sink: Option<String>,
    /// The error of the attempt.
    pub error: Option<String>,
}

impl From<&Stored> for DeliveryView {
    fn from(stored: &Stored) -> Self {
        Self {
            sink: (!stored.sink.is_empty()).then(|| stored.sink.clone()),
            status: stored.status,
            detail: stored.detail.clone(),
            attempts: stored.attempts,
            last_error: stored.last_error.clone(),
            due_at: stored.due_at.map(rfc3339),
            ended_at: stored.ended_at.map(rfc3339),
            history: stored.history.as_deref().map(history).unwrap_or_default(),
        }
    }
}

fn history(text: &str) -> Vec<TriedView> {
    serde_json::from_str(text).unwrap_or_else(|_| {
        // Not in the format of the relay: operators see the raw text.
        vec![TriedView {
            at: None,
            sink: None,
            error: Some(text.to_owned()),
        }]
    })
}
