//! A work item.

use sendoff::Uuid;
use sendoff::envelope::rfc3339;
use sendoff::store::{ItemState, StoredItem};
use serde::Serialize;
use serde_json::Value;

use super::MessageView;

/// A work item as an operator sees it.
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
    /// What went wrong the last time.
    pub last_error: Option<String>,
    /// The worker that has it.
    pub lease_owner: Option<String>,
    /// When its lease ends, RFC 3339. Once this is past, the next worker that asks gets it.
    pub lease_until: Option<String>,
    /// Its number.
    pub seq: i64,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When it is handed out again, RFC 3339.
    pub due_at: Option<String>,
    /// When it was completed, RFC 3339.
    pub completed_at: Option<String>,
    /// When it expires, RFC 3339.
    pub expires_at: Option<String>,
    /// Its headers: an object of strings, or whatever else is in the table.
    pub headers: Value,
    /// Its content type.
    pub content_type: String,
    /// How long its payload is.
    pub payload_bytes: u64,
    /// Its payload, when that is text: UTF-8 without control characters other than tabs and line breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Its payload, when that is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

/// A page of items.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemListView {
    /// The items, oldest first.
    pub items: Vec<ItemView>,
    /// Whether there are more behind them.
    pub more: bool,
}

impl ItemView {
    /// The item of a row.
    pub(crate) fn of(item: StoredItem) -> Option<Self> {
        let message = MessageView::of_legs(vec![item.message])?;
        let leg = message.legs.into_iter().next()?;
        Some(Self {
            id: message.id,
            state: item.state,
            topic: message.topic,
            key: message.key,
            aggregate_type: message.aggregate_type,
            aggregate_id: message.aggregate_id,
            idempotency_key: message.idempotency_key,
            attempts: leg.attempts,
            max_attempts: message.max_attempts,
            last_error: leg.last_error,
            lease_owner: item.lease_owner,
            lease_until: item.lease_until.map(rfc3339),
            seq: message.seq,
            created_at: message.created_at,
            due_at: leg.due_at,
            completed_at: leg.ended_at,
            expires_at: message.expires_at,
            headers: message.headers,
            content_type: message.content_type,
            payload_bytes: message.payload_bytes,
            payload: message.payload,
            payload_base64: message.payload_base64,
        })
    }
}
