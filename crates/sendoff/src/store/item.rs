//! A work item as a worker gets it.

use std::str::FromStr;
use std::time::SystemTime;

use bytes::Bytes;
use uuid::Uuid;

use super::Stored;
use crate::{Error, ErrorKind, Headers, message::JSON};

/// One hand-out of one item: the fencing token that every mark carries. A later hand-out of the same item has another
/// number, even to the same worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim {
    /// The item's place in the table.
    pub seq: i64,
    /// The number of the hand-out.
    pub number: i64,
}

/// An item that was claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What its marks carry.
    pub claim: Claim,
    /// Its id: the one of the message that was emitted.
    pub id: Uuid,
    /// What it is about.
    pub topic: String,
    /// Exactly the bytes that were emitted.
    pub payload: Bytes,
    /// `None` is JSON; see [`Item::content_type`].
    pub content_type: Option<String>,
    /// Its headers.
    pub headers: Headers,
    /// Its key. It is handed over and gives no order: items of one key may be worked on at the same time.
    pub key: Option<String>,
    /// The aggregate's type, of a domain event.
    pub aggregate_type: Option<String>,
    /// The aggregate's id, of a domain event.
    pub aggregate_id: Option<String>,
    /// The version of the payload's schema.
    pub schema_version: Option<i32>,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// Its priority, which is handed over and gives no order.
    pub priority: i16,
    /// When its transaction began, by the database's clock.
    pub created_at: SystemTime,
    /// Not handed out after this.
    pub expires_at: Option<SystemTime>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// How many attempts there are.
    pub max_attempts: u32,
}

impl Item {
    /// The content type of the payload.
    pub fn content_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or(JSON)
    }
}

/// Where an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemState {
    /// Never handed out, or given back.
    Pending,
    /// A worker has it.
    Running,
    /// It failed, and is handed out again when its time comes.
    Retry,
    /// Done, and kept because the store has a retention.
    Completed,
    /// Given up; an operator can bring it back.
    Failed,
}

impl ItemState {
    /// The word, as it is in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Retry => "retry",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

impl FromStr for ItemState {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let states = [Self::Pending, Self::Running, Self::Retry, Self::Completed, Self::Failed];
        let found = states.into_iter().find(|state| state.as_str() == word);
        found.ok_or_else(|| {
            Error::new(ErrorKind::Invalid, format!("items have no state {word:?}"))
                .next_step("use pending, running, retry, completed or failed")
        })
    }
}

/// An item as an operator sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredItem {
    /// Where it stands.
    pub state: ItemState,
    /// The worker that has it.
    pub lease_owner: Option<String>,
    /// Until when that worker has it. Once this is past, the next worker that asks gets it.
    pub lease_until: Option<SystemTime>,
    /// What was emitted, and what became of it, as of a message without lane and leg: its detail is the word of the state,
    /// it is due at its next attempt, and its end is when it was completed.
    pub message: Stored,
}

impl StoredItem {
    /// The item of a row, whose detail is the word of its state.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when no state has that word.
    pub fn new(message: Stored, lease_owner: Option<String>, lease_until: Option<SystemTime>) -> Result<Self, Error> {
        Ok(Self {
            state: message.detail.as_deref().unwrap_or_default().parse()?,
            lease_owner,
            lease_until,
            message,
        })
    }
}

/// How many items there are, by their state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct ItemCounts {
    /// Never handed out, or given back.
    pub pending: u64,
    /// In the hands of workers, those whose lease has run out included.
    pub running: u64,
    /// Failed before.
    pub retry: u64,
    /// Done and kept.
    pub completed: u64,
    /// Given up.
    pub failed: u64,
}

impl ItemCounts {
    /// Puts the number of a state, by its word, in its place. Words that no state has are passed over.
    pub fn set(&mut self, state: &str, count: u64) {
        let place = match state {
            "pending" => &mut self.pending,
            "running" => &mut self.running,
            "retry" => &mut self.retry,
            "completed" => &mut self.completed,
            "failed" => &mut self.failed,
            _ => return,
        };
        *place = count;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.pending + self.running + self.retry + self.completed + self.failed
    }
}
