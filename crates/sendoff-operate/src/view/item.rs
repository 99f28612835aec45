//! A failed item.

use sendoff::Uuid;
use sendoff::store::{ItemState, Stored};
use serde::Serialize;
use serde_json::Value;

use super::MessageView;

/// A failed item as an operator sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemView {
    /// Its id; `None` when the row's id cannot be read.
    pub id: Option<Uuid>,
    /// Where it stands.
    pub state: ItemState,
    /// Its topic.
    pub topic: String,
    /// Its key.
    pub key: Option<String>,
    /// The aggregate's type.
    pub aggregate_type: Option<String>,
    /// The aggregate's id.
    pub aggregate_id: Option<String>,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// How often it was handed out.
    pub attempts: i64,
    /// Its own limit of attempts.
    pub max_attempts: Option<i64>,
    /// Why it was given up.
    pub last_error: Option<String>,
    /// Its number.
    pub seq: i64,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When it expires, RFC 3339.
    pub expires_at: Option<String>,
    /// Its headers: an object of strings, or whatever else is in the table.
    pub headers: Value,
    /// Its content type.
    pub content_type: String,
    /// How long its payload is.
    pub payload_bytes: usize,
    /// Its payload, when that is text: UTF-8 without control characters other than tabs and line breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Its payload, when that is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

/// A page of failed items.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemListView {
    /// The items, oldest first.
    pub items: Vec<ItemView>,
    /// Whether there are more behind them.
    pub more: bool,
}

impl ItemView {
    /// The item of a row.
    pub(crate) fn of(stored: Stored) -> Option<Self> {
        let (attempts, last_error) = (stored.attempts, stored.last_error.clone());
        let message = MessageView::of_legs(vec![stored])?;
        Some(Self {
            id: message.id,
            state: ItemState::Failed,
            topic: message.topic,
            key: message.key,
            aggregate_type: message.aggregate_type,
            aggregate_id: message.aggregate_id,
            idempotency_key: message.idempotency_key,
            attempts,
            max_attempts: message.max_attempts,
            last_error,
            seq: message.seq,
            created_at: message.created_at,
            expires_at: message.expires_at,
            headers: message.headers,
            content_type: message.content_type,
            payload_bytes: message.payload_bytes,
            payload: message.payload,
            payload_base64: message.payload_base64,
        })
    }
}
