//! A message as it leaves the store.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use uuid::Uuid;

use super::RowId;
use crate::columns::{ColumnSource, Contents, Positions, Unreadable, integer, unreadable};
use crate::{Headers, message::JSON};

/// The number of a lane: a share of the messages that one relay leases.
pub type Lane = u16;

/// The table of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// The ready table: messages that were not tried yet, one row for all their sinks.
    Ready,
    /// The waiting table: one row per delivery, or per scheduled message that is not routed yet.
    Waiting,
}

/// Identifies one row in the outbox's tables.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowRef {
    /// The table of the row.
    pub table: Table,
    /// The lane of the row.
    pub lane: Lane,
    /// The number that the database gave the message at emit; it grows within a lane. Numbers may repeat when the
    /// database's history changes, as after a failover, so the id must match as well.
    pub seq: i64,
    /// The message's id, as the table stores it.
    pub id: RowId,
    /// The sink of the delivery; `None` for a message that has not been routed yet.
    pub sink: Option<Arc<str>>,
    /// The position of the row in its table, for a store that settles faster with it; otherwise 0. Only the store that
    /// set it knows its meaning.
    pub locator: u64,
}

/// A message as a sink receives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// The message's id: the same in every copy.
    pub id: Uuid,
    /// The message's topic, which routes match.
    pub topic: String,
    /// The emitted payload, unchanged.
    pub payload: Bytes,
    /// The payload's content type; `None` is JSON. See [`Outgoing::content_type`].
    pub content_type: Option<String>,
    /// The message's headers.
    pub headers: Headers,
    /// The message's ordering key.
    pub key: Option<String>,
    /// The type of the event's aggregate. `None` unless an event was emitted.
    pub aggregate_type: Option<String>,
    /// The id of the event's aggregate. `None` unless an event was emitted.
    pub aggregate_id: Option<String>,
    /// The version of the payload's schema.
    pub schema_version: Option<i32>,
    /// The message's idempotency key.
    pub idempotency_key: Option<String>,
    /// The message's priority. Above 0: delivered before others; below 0: after others.
    pub priority: i16,
    /// When the emitting transaction began, by the database's clock.
    pub created_at: SystemTime,
    /// The message is not delivered after this time.
    pub expires_at: Option<SystemTime>,
    /// The number of failed attempts of this delivery so far.
    pub attempts: u32,
    /// The message's own limit of attempts.
    pub max_attempts: Option<u32>,
    /// Identifies the message's row.
    pub row_ref: RowRef,
}

impl Outgoing {
    /// A message of this row without contents: no topic, an empty payload, created at the epoch. To fill in the rest,
    /// write `Outgoing { topic, payload, ..Outgoing::blank(row_ref) }`.
    pub fn blank(row_ref: RowRef) -> Self {
        Self {
            id: row_ref.id.uuid(),
            topic: String::new(),
            payload: Bytes::new(),
            content_type: None,
            headers: Headers::new(),
            key: None,
            aggregate_type: None,
            aggregate_id: None,
            schema_version: None,
            idempotency_key: None,
            priority: 0,
            created_at: SystemTime::UNIX_EPOCH,
            expires_at: None,
            attempts: 0,
            max_attempts: None,
            row_ref,
        }
    }

    /// Reads a message from a row; [`Positions::find`] finds the positions of the columns. `attempts` is 0 unless the
    /// row was tried before.
    ///
    /// # Errors
    /// # Errors
    /// A text that says why the row is not a valid message. Another program may have written the row.
    pub fn read(
        row: &impl ColumnSource,
        at: &Positions,
        attempts: Option<usize>,
        row_ref: RowRef,
    ) -> Result<Self, Unreadable> {
        let contents = Contents::read(row, at)?;
        let payload = contents.payload.ok_or_else(|| unreadable("payload", "is NULL"))?;
        Ok(Self {
            id: row_ref.id.parse()?,
            topic: contents.topic,
            payload,
            content_type: contents.content_type,
            headers: contents.headers,
            key: contents.key,
            aggregate_type: contents.aggregate_type,
            aggregate_id: contents.aggregate_id,
            schema_version: contents.schema_version,
            idempotency_key: contents.idempotency_key,
            priority: contents.priority,
            created_at: contents.created_at,
            expires_at: contents.expires_at,
            attempts: match attempts {
                Some(at) => integer(row, at, "attempts", 0, i32::MAX.into())?.unwrap_or_default(),
                None => 0,
            },
            max_attempts: integer(row, at.max_attempts, "max_attempts", 1, i16::MAX.into())?,
            row_ref,
        })
    }

    /// The content type of the payload.
    pub fn content_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or(JSON)
    }

    /// The size of the payload, headers and texts in bytes.
    pub fn bytes(&self) -> usize {
        let texts = [
            &self.content_type,
            &self.key,
            &self.aggregate_type,
            &self.aggregate_id,
            &self.idempotency_key,
        ];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.payload.len() + self.topic.len() + texts + headers
    }
}
