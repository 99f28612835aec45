//! One message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Uuid;
use sendoff::envelope::rfc3339;
use sendoff::message::JSON;
use sendoff::store::{Status, Stored};
use serde::Serialize;
use serde_json::Value;

use super::DeliveryView;

/// A message as an operator sees it, with some or all of its deliveries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageView {
    /// The message's id; `None` when the row's id cannot be read.
    pub id: Option<Uuid>,
    /// The status of the message's worst delivery: dead, then retry, blocked, deferred, pending, scheduled, delivered.
    pub status: Status,
    /// The message's topic.
    pub topic: String,
    /// The message's ordering key.
    pub key: Option<String>,
    /// The type of the message's aggregate.
    pub aggregate_type: Option<String>,
    /// The id of the message's aggregate.
    pub aggregate_id: Option<String>,
    /// The version of the payload's schema.
    pub schema_version: Option<i64>,
    /// The message's idempotency key.
    pub idempotency_key: Option<String>,
    /// The message's priority.
    pub priority: i64,
    /// The message's own limit of attempts.
    pub max_attempts: Option<i64>,
    /// The message's lane.
    pub lane: i64,
    /// The message's number in the lane.
    pub seq: i64,
    /// When the message was created, RFC 3339.
    pub created_at: String,
    /// When the message expires, RFC 3339.
    pub expires_at: Option<String>,
    /// The message's headers: an object of strings, or any other JSON that is in the table.
    pub headers: Value,
    /// Whether the headers are left out because they are too long.
    pub headers_cut: bool,
    /// The payload's content type.
    pub content_type: String,
    /// The size of the payload in bytes.
    pub payload_bytes: u64,
    /// Whether the payload is cut off.
    pub payload_cut: bool,
    /// The payload, if it is text: UTF-8 without control characters other than tabs and line breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The payload in base64, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// The message's deliveries, by the names of their sinks.
    pub deliveries: Vec<DeliveryView>,
}

impl MessageView {
    /// Removes the payload; its size stays.
    pub(crate) fn without_payload(mut self) -> Self {
        (self.payload, self.payload_base64) = (None, None);
        self
    }

    /// The message of the given deliveries; `None` without deliveries.
    pub fn of_deliveries(mut stored: Vec<Stored>) -> Option<Self> {
        stored.sort_by(|one, other| one.sink.cmp(&other.sink));
        let deliveries: Vec<DeliveryView> = stored.iter().map(DeliveryView::from).collect();
        let status = deliveries
            .iter()
            .map(|sink| sink.status)
            .min_by_key(|status| rank(*status))?;
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
            headers_cut: first.headers_cut,
            content_type: first.content_type.unwrap_or_else(|| JSON.to_owned()),
            payload_bytes,
            payload_cut,
            payload,
            payload_base64,
            deliveries,
        })
    }
}

fn rank(status: Status) -> u8 {
    match status {
        Status::Dead => 0,
        Status::Retry => 1,
        Status::Blocked => 2,
        Status::Deferred => 3,
        Status::Pending => 4,
        Status::Scheduled => 5,
        Status::Delivered => 6,
        _ => 7,
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
        // The last character was also cut.
        bytes.truncate(error.valid_up_to());
    }
    let text = String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)?;
    if text.contains(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        return Err(text.into_bytes());
    }
    Ok(text)
}
