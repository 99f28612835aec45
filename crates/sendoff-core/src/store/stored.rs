//! A row as an operator sees it, and the counts of all rows.

use std::time::SystemTime;

use uuid::Uuid;

use super::Status;
use crate::columns::{ColumnSource, ShownPositions};
use crate::{Error, ErrorKind, Result};

/// How many bytes of a payload a list includes: enough to recognise it.
pub const LISTED_BYTES: usize = 4 << 10;

/// How many bytes of a payload the view of a single message includes. Only a message beyond the tables' default limit
/// has more.
pub const SHOWN_BYTES: usize = 16 << 20;

/// The longest headers, as JSON, that the view of a single message includes. Only a message that bypassed the tables'
/// limits has more.
pub const SHOWN_HEADERS: usize = 1 << 20;

/// A message, or one of its deliveries, as an operator sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The delivery's status.
    pub status: Status,
    /// The message's id; `None` when the row's id cannot be read.
    pub id: Option<Uuid>,
    /// The message's topic.
    pub topic: String,
    /// The sink; empty when the message is not routed yet.
    pub sink: String,
    /// The message's ordering key.
    pub key: Option<String>,
    /// The message's lane.
    pub lane: i64,
    /// The message's number.
    pub seq: i64,
    /// The type of the message's aggregate.
    pub aggregate_type: Option<String>,
    /// The id of the message's aggregate.
    pub aggregate_id: Option<String>,
    /// The version of the payload's schema.
    pub schema_version: Option<i64>,
    /// The message's idempotency key.
    pub idempotency_key: Option<String>,
    /// The payload's content type; `None` is JSON.
    pub content_type: Option<String>,
    /// The message's headers, as JSON text from the table; left out if they are longer than [`LISTED_BYTES`] in a list
    /// or [`SHOWN_HEADERS`] for a single message.
    pub headers: Option<String>,
    /// Whether the headers were left out.
    pub headers_cut: bool,
    /// The payload, cut to [`LISTED_BYTES`] in a list and to [`SHOWN_BYTES`] for a single message.
    pub payload: Vec<u8>,
    /// The full length of the payload.
    pub payload_bytes: u64,
    /// The message's priority.
    pub priority: i64,
    /// The number of failed attempts.
    pub attempts: i64,
    /// The message's own limit of attempts.
    pub max_attempts: Option<i64>,
    /// The last error of the delivery.
    pub last_error: Option<String>,
    /// The state of a waiting message, or the reason of a dead one, as one word.
    pub detail: Option<String>,
    /// The failed attempts of this delivery, oldest first, as a JSON array of `{"at", "sink", "error"}`. `None` for a
    /// message that is ready; a list may leave it out.
    pub history: Option<String>,
    /// When the message was created.
    pub created_at: SystemTime,
    /// When the delivery is due; `None` for one that is ready, blocked, delivered or dead.
    pub due_at: Option<SystemTime>,
    /// When the message expires.
    pub expires_at: Option<SystemTime>,
    /// When the delivery was delivered or died.
    pub ended_at: Option<SystemTime>,
}

impl Stored {
    /// Reads a row; [`ShownPositions::find`] finds the positions of the columns. An operator must also see rows that
    /// are partly unreadable, so a value of the wrong type is treated as missing.
    ///
    /// # Errors
    /// [`ErrorKind::Backend`] when no status has the name in the row.
    pub fn read(row: &impl ColumnSource, at: &ShownPositions) -> Result<Self> {
        let integer = |at| row.integer(at).unwrap_or_default();
        let time = |at| row.time(at).unwrap_or_default();
        let status = row.lossy(at.status).unwrap_or_default();
        let headers = row.lossy(at.headers);
        Ok(Self {
            status: Status::named(&status)
                .ok_or_else(|| Error::new(ErrorKind::Backend, format!("unknown message status {status:?}")))?,
            id: row.uuid(at.id),
            topic: row.lossy(at.topic).unwrap_or_default(),
            sink: row.lossy(at.sink).unwrap_or_default(),
            key: row.lossy(at.key),
            lane: integer(at.lane).unwrap_or_default(),
            seq: integer(at.seq).unwrap_or_default(),
            aggregate_type: row.lossy(at.aggregate_type),
            aggregate_id: row.lossy(at.aggregate_id),
            schema_version: integer(at.schema_version),
            idempotency_key: row.lossy(at.idempotency_key),
            content_type: row.lossy(at.content_type),
            headers_cut: headers.is_none() && integer(at.has_headers) == Some(1),
            headers,
            payload: row.bytes(at.payload).unwrap_or_default().unwrap_or_default().to_vec(),
            payload_bytes: integer(at.payload_bytes).unwrap_or_default().unsigned_abs(),
            priority: integer(at.priority).unwrap_or_default(),
            attempts: integer(at.attempts).unwrap_or_default(),
            max_attempts: integer(at.max_attempts),
            last_error: row.lossy(at.last_error),
            detail: row.lossy(at.detail),
            history: row.lossy(at.history),
            created_at: time(at.created_at).unwrap_or(SystemTime::UNIX_EPOCH),
            due_at: time(at.due_at),
            expires_at: time(at.expires_at),
            ended_at: time(at.ended_at),
        })
    }

    /// Cuts the payload and drops longer headers, for a store that has read them in full.
    #[must_use]
    pub fn cut(mut self, bytes: usize) -> Self {
        self.payload.truncate(bytes);
        let had_headers = self.headers.is_some();
        self.headers = self.headers.filter(|headers| headers.len() <= bytes.min(SHOWN_HEADERS));
        self.headers_cut = had_headers && self.headers.is_none();
        self
    }
}

/// The numbers of messages and deliveries in the outbox, by state.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// The number of messages that are ready now.
    pub ready: u64,
    /// The number of deliveries that wait: scheduled, in retry, blocked or deferred. A message that is not routed yet
    /// counts once.
    pub waiting: u64,
    /// The number of waiting deliveries with failed attempts.
    pub failed: u64,
    /// The number of dead letters, which are deliveries. A message that could not be routed counts once.
    pub dead: u64,
    /// The number of deliveries that are kept by retention: a message that two sinks confirmed counts twice.
    pub delivered: u64,
    /// The age of the oldest ready message.
    pub oldest_ready: Option<std::time::Duration>,
    /// The age of the oldest message that never failed: ready or waiting, without scheduled ones that are not due yet.
    pub oldest_pending: Option<std::time::Duration>,
}
