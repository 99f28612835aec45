//! A message as it leaves the store.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use uuid::Uuid;

use super::RowId;
use crate::columns::{ColumnSource, Contents, Positions, Unreadable, integer, unreadable};
use crate::{Headers, message::JSON};

/// A hash bucket of the ready table, leased by a relay.
pub type Lane = u16;

/// Which table a row is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Ready: not tried yet, one row for all its sinks.
    Ready,
    /// Waiting: for one sink, or scheduled and not routed yet.
    Waiting,
}

/// Identifies a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowRef {
    /// Its table.
    pub table: Table,
    /// Its lane.
    pub lane: Lane,
    /// The number that the database gave it at emit; it grows within a lane. Numbers may repeat when the database's
    /// history changes, as after a failover, so the id must match as well.
    pub seq: i64,
    /// The id of its message, as the table has it.
    pub id: RowId,
    /// The sink that it waits for; `None` when it has not been routed yet.
    pub sink: Option<Arc<str>>,
    /// The position in its table, for a store that settles faster with it; otherwise 0. Only the store that set it
    /// knows its meaning.
    pub locator: u64,
}

/// A message that is handed to a sink.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// Its id: the same in every copy.
    pub id: Uuid,
    /// Its topic, which routes match.
    pub topic: String,
    /// The emitted bytes, unchanged.
    pub payload: Bytes,
    /// `None` is JSON; see [`Outgoing::content_type`].
    pub content_type: Option<String>,
    /// Its headers.
    pub headers: Headers,
    /// Its ordering key.
    pub key: Option<String>,
    /// The aggregate's type, of a domain event.
    pub aggregate_type: Option<String>,
    /// The aggregate's id, of a domain event.
    pub aggregate_id: Option<String>,
    /// The version of the payload's schema.
    pub schema_version: Option<i32>,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// Above 0: before others; below 0: after others.
    pub priority: i16,
    /// When its transaction began, by the database's clock.
    pub created_at: SystemTime,
    /// Not delivered after this.
    pub expires_at: Option<SystemTime>,
    /// Failed attempts of this delivery so far.
    pub attempts: u32,
    /// Its own limit of attempts.
    pub max_attempts: Option<u32>,
    /// Where its row is.
    pub row_ref: RowRef,
}

impl Outgoing {
    /// The message of a row, without contents: no topic, an empty payload, created at the epoch. To fill in, as in
    /// `Outgoing { topic, payload, ..Outgoing::blank(row_ref) }`.
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

    /// Reads the message of a row, whose columns are [at these positions](Positions::find); `attempts` is the one of a row
    /// that was tried.
    ///
    /// # Errors
    /// In words, what keeps the row from being a message. Another program may have written it.
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

    /// The size of its payload, headers and texts in bytes.
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
