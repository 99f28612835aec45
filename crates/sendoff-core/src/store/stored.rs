//! A row as an operator sees it, and the counts of all rows.

use std::time::SystemTime;

use uuid::Uuid;

use super::Status;
use crate::columns::{ColumnSource, ShownPositions};
use crate::{Error, ErrorKind, Result};

/// How much of a payload is in a list: enough to recognise it.
pub const LISTED_BYTES: usize = 4 << 10;

/// How much of a payload is in a single message: all of it, unless the limits of the tables were raised.
pub const SHOWN_BYTES: usize = 16 << 20;

/// How long the headers of a single message may be, as JSON: all of them, unless the limits of the tables were bypassed.
pub const SHOWN_HEADERS: usize = 1 << 20;

/// A message, or one of its deliveries, as an operator sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its status.
    pub status: Status,
    /// Its id; `None` when the row's id cannot be read.
    pub id: Option<Uuid>,
    /// Its topic.
    pub topic: String,
    /// The sink; empty when it is not routed yet.
    pub sink: String,
    /// Its ordering key.
    pub key: Option<String>,
    /// Its lane.
    pub lane: i64,
    /// Its number.
    pub seq: i64,
    /// The aggregate's type.
    pub aggregate_type: Option<String>,
    /// The aggregate's id.
    pub aggregate_id: Option<String>,
    /// The version of its payload's schema.
    pub schema_version: Option<i64>,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// Its content type; `None` is JSON.
    pub content_type: Option<String>,
    /// Its headers, as JSON text from the table; left out if they are longer than [`LISTED_BYTES`] in a list or
    /// [`SHOWN_HEADERS`] for a single message.
    pub headers: Option<String>,
    /// Whether headers were left out.
    pub headers_cut: bool,
    /// Its payload, cut to [`LISTED_BYTES`] in a list and to [`SHOWN_BYTES`] for a single message.
    pub payload: Vec<u8>,
    /// The full length of its payload.
    pub payload_bytes: u64,
    /// Its priority.
    pub priority: i64,
    /// Failed attempts.
    pub attempts: i64,
    /// Its own limit.
    pub max_attempts: Option<i64>,
    /// The last error.
    pub last_error: Option<String>,
    /// The state of a waiting message, or the reason of a dead one, as one word.
    pub detail: Option<String>,
    /// The failed attempts of this delivery, oldest first, as a JSON array of `{"at", "sink", "error"}`. `None` for a
    /// message that is ready; a list may leave it out.
    pub history: Option<String>,
    /// When it was created.
    pub created_at: SystemTime,
    /// When it is due; `None` for one that is ready, blocked, delivered or dead.
    pub due_at: Option<SystemTime>,
    /// When it expires.
    pub expires_at: Option<SystemTime>,
    /// When it was delivered or died.
    pub ended_at: Option<SystemTime>,
}

impl Stored {
    /// Reads what a row has, with its columns [at these positions](ShownPositions::find). An operator has to see what
    /// cannot be read, so a value of another type is only missing.
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
                .ok_or_else(|| Error::new(ErrorKind::Backend, format!("messages have no status {status:?}")))?,
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

    /// Cuts the payload and drops longer headers, for a store that has read all of it.
    #[must_use]
    pub fn cut(mut self, bytes: usize) -> Self {
        self.payload.truncate(bytes);
        let had_headers = self.headers.is_some();
        self.headers = self.headers.filter(|headers| headers.len() <= bytes.min(SHOWN_HEADERS));
        self.headers_cut = had_headers && self.headers.is_none();
        self
    }
}

/// The counts of the outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// Messages that are ready now.
    pub ready: u64,
    /// Deliveries that wait: scheduled, in retry, blocked or deferred. A message that is not routed yet counts once.
    pub waiting: u64,
    /// Deliveries that wait, with failed attempts.
    pub failed: u64,
    /// Dead letters, which are deliveries. A message that could not be routed counts once.
    pub dead: u64,
    /// Deliveries that are kept by retention: a message that two sinks confirmed counts twice.
    pub delivered: u64,
    /// The age of the oldest ready message.
    pub oldest_ready: Option<std::time::Duration>,
    /// The age of the oldest message that never failed: ready or waiting, without scheduled ones that are not due yet.
    pub oldest_pending: Option<std::time::Duration>,
}
