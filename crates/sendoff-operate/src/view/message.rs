//! One message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Uuid;
use sendoff::envelope::rfc3339;
use sendoff::message::JSON;
use sendoff::store::{Status, Stored};
use serde::Serialize;
use serde_json::Value;

use super::LegView;

/// A message as an operator sees it, with some or all of its legs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageView {
    /// Its id; `None` when the row's id cannot be read.
    pub id: Option<Uuid>,
    /// The status of its worst leg: dead, then retry, pending, delivered.
    pub status: Status,
    /// Its topic.
    pub topic: String,
    /// Its ordering key.
    pub key: Option<String>,
    /// The aggregate's type.
    pub aggregate_type: Option<String>,
    /// The aggregate's id.
    pub aggregate_id: Option<String>,
    /// The version of its payload's schema.
    pub schema_version: Option<i64>,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// Its priority.
    pub priority: i64,
    /// Its own limit of attempts.
    pub max_attempts: Option<i64>,
    /// Its lane.
    pub lane: i64,
    /// Its number in the lane.
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
    pub payload_bytes: u64,
    /// Whether only its beginning is here.
    pub payload_cut: bool,
    /// Its payload, when that is text: UTF-8 without control characters other than tabs and line breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Its payload, when that is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// How it stands with its sinks, by their names.
    pub legs: Vec<LegView>,
}

impl MessageView {
    /// The message that all of these are legs of; `None` when there are none.
    pub fn of_legs(mut stored: Vec<Stored>) -> Option<Self> {
        stored.sort_by(|one, other| one.leg.cmp(&other.leg));
        let legs: Vec<LegView> = stored.iter().map(LegView::from).collect();
        let status = legs.iter().map(|leg| leg.status).min_by_key(|status| rank(*status))?;
        let first = stored.into_iter().next()?;
        let payload_bytes = first.payload_bytes;
        let payload_cut = first.payload.len() as u64 != payload_bytes;
        let (payload, payload_base64) = match text(first.payload, payload_cut) {
            Ok(text) => (Some(text), None),
            Err(bytes) => (None, Some(STANDARD.encode(bytes))),
        };
        Some(Self {
            id: first.id,
            status,
            topic: first.topic,
            key: first.key,
            aggregate_type: first.aggregate_type,
            aggregate_id: first.aggregate_id,
            schema_version: first.schema_version,
            idempotency_key: first.idempotency_key,
            priority: first.priority,
            max_attempts: first.max_attempts,
            lane: first.lane,
            seq: first.seq,
            created_at: rfc3339(first.created_at),
            expires_at: first.expires_at.map(rfc3339),
            headers: first
                .headers
                .map_or_else(|| Value::Object(serde_json::Map::new()), headers),
            content_type: first.content_type.unwrap_or_else(|| JSON.to_owned()),
            payload_bytes,
            payload_cut,
            payload,
            payload_base64,
            legs,
        })
    }
}

fn rank(status: Status) -> u8 {
    match status {
        Status::Dead => 0,
        Status::Retry => 1,
        Status::Pending => 2,
        Status::Delivered => 3,
    }
}

fn headers(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn text(mut bytes: Vec<u8>, is_cut: bool) -> Result<String, Vec<u8>> {
    if let Err(error) = std::str::from_utf8(&bytes)
        && is_cut
        && error.error_len().is_none()
    {
        // The last character was cut, too.
        bytes.truncate(error.valid_up_to());
    }
    let text = String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)?;
    if text.contains(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        return Err(text.into_bytes());
    }
    Ok(text)
}
