//! What a row says about a message, whatever becomes of it.

use std::time::SystemTime;

use bytes::Bytes;

use super::Positions;
use super::source::{ColumnSource, Unreadable, headers, integer, text, unreadable};
use crate::Headers;

/// The columns of `{contents}`, but for the id and the limit of attempts, which depend on the table.
pub(crate) struct Contents {
    pub(crate) topic: String,
    pub(crate) payload: Option<Bytes>,
    pub(crate) content_type: Option<String>,
    pub(crate) headers: Headers,
    pub(crate) key: Option<String>,
    pub(crate) aggregate_type: Option<String>,
    pub(crate) aggregate_id: Option<String>,
    pub(crate) schema_version: Option<i32>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) priority: i16,
    pub(crate) created_at: SystemTime,
    pub(crate) expires_at: Option<SystemTime>,
}

impl Contents {
    /// # Errors
    /// In words, what keeps the row from being a message. Another program may have written it.
    pub(crate) fn read(row: &impl ColumnSource, at: &Positions) -> Result<Self, Unreadable> {
        let topic = text(row, at.topic, "topic")?.unwrap_or_default();
        if topic.is_empty() {
            return Err("the topic is empty".to_owned());
        }
        let payload = row.bytes(at.payload).map_err(|why| unreadable("payload", why))?;
        let time = |at, name| row.time(at).map_err(|why| unreadable(name, why));
        let (least, most) = (i32::MIN.into(), i32::MAX.into());
        Ok(Self {
            topic,
            payload: payload.map(Bytes::copy_from_slice),
            content_type: text(row, at.content_type, "content_type")?,
            headers: headers(row, at.headers)?,
            key: text(row, at.key, "key")?,
            aggregate_type: text(row, at.aggregate_type, "aggregate_type")?,
            aggregate_id: text(row, at.aggregate_id, "aggregate_id")?,
            schema_version: integer(row, at.schema_version, "schema_version", least, most)?,
            idempotency_key: text(row, at.idempotency_key, "idempotency_key")?,
            priority: integer(row, at.priority, "priority", i16::MIN.into(), i16::MAX.into())?.unwrap_or_default(),
            created_at: time(at.created_at, "created_at")?.unwrap_or(SystemTime::UNIX_EPOCH),
            expires_at: time(at.expires_at, "expires_at")?,
        })
    }
}
