//! One way of a message: to one sink.

use sendoff::envelope::rfc3339;
use sendoff::store::{Status, Stored};
use serde::{Deserialize, Serialize};

/// How a message stands with one sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LegView {
    /// The sink; `None` when the message is not routed yet, or was delivered to all of its sinks at once.
    pub leg: Option<String>,
    /// Its status.
    pub status: Status,
    /// The state of a waiting leg or the reason of a dead one, in one word.
    pub detail: Option<String>,
    /// Failed attempts.
    pub attempts: i64,
    /// The last error.
    pub last_error: Option<String>,
    /// When it is due, RFC 3339; `None` for one that is ready, held, or ended.
    pub due_at: Option<String>,
    /// When it was delivered or died, RFC 3339.
    pub ended_at: Option<String>,
    /// What was tried, oldest first.
    pub history: Vec<TriedView>,
}

/// One attempt that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriedView {
    /// When, RFC 3339.
    pub at: Option<String>,
    /// At which sink.
    pub leg: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

impl From<&Stored> for LegView {
    fn from(stored: &Stored) -> Self {
        Self {
            leg: (!stored.leg.is_empty()).then(|| stored.leg.clone()),
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
        // Not as the relay writes it: an operator still gets to see what is there.
        vec![TriedView {
            at: None,
            leg: None,
            error: Some(text.to_owned()),
        }]
    })
}
