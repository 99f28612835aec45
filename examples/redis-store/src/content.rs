//! The stored content of a message: the fields from its producer, out of an emit statement and into what a sink is handed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sendoff::columns::parameter;
use sendoff::emit::Param;
use sendoff::store::{Outgoing, RowRef};
use sendoff::{BoxError, Headers, Uuid};
use serde::{Deserialize, Serialize};

use crate::micros;

/// The fields that are the same in every table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) id: Uuid,
    pub(crate) topic: String,
    #[serde(with = "base64_text")]
    pub(crate) payload: Vec<u8>,
    pub(crate) content_type: Option<String>,
    /// A JSON object of strings, as text.
    pub(crate) headers: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) aggregate_type: Option<String>,
    pub(crate) aggregate_id: Option<String>,
    pub(crate) schema_version: Option<i32>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) priority: i16,
    pub(crate) max_attempts: Option<u32>,
    /// All times are microseconds since the epoch, by the server's clock.
    pub(crate) created_at: i64,
    pub(crate) expires_at: Option<i64>,
}

impl Content {
    /// Reads a row. The error describes the problem without the contents.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| {
            format!(
                "the row is not a message: {:?} at column {}",
                error.classify(),
                error.column()
            )
        })
    }

    pub(crate) fn outgoing(self, row_ref: RowRef, attempts: u32) -> Result<Outgoing, String> {
        let headers = match &self.headers {
            None => Headers::new(),
            Some(text) => Headers::from_json(text).map_err(|error| error.to_string())?,
        };
        Ok(Outgoing {
            id: self.id,
            topic: self.topic,
            payload: Bytes::from(self.payload),
            content_type: self.content_type,
            headers,
            key: self.key,
            aggregate_type: self.aggregate_type,
            aggregate_id: self.aggregate_id,
            schema_version: self.schema_version,
            idempotency_key: self.idempotency_key,
            priority: self.priority,
            created_at: time(self.created_at),
            expires_at: self.expires_at.map(time),
            attempts,
            max_attempts: self.max_attempts,
            row_ref,
        })
    }
}

/// The messages of a statement, and the due time of scheduled ones. Each value of a statement is a single value or an array.
pub(crate) fn contents(params: &[Param<'_>], now: i64) -> Result<Vec<(Content, Option<i64>)>, BoxError> {
    let count = match params.first() {
        Some(Param::Uuids(ids)) => ids.len(),
        _ => 1,
    };
    (0..count).map(|row| content(params, row, now)).collect()
}

fn content(params: &[Param<'_>], row: usize, now: i64) -> Result<(Content, Option<i64>), BoxError> {
    let given = |name: &str| parameter(name).and_then(|place| params.get(place));
    let other = |name: &str| BoxError::from(format!("the value {name} of the emit statement has another type"));
    let text = |name: &str| match given(name) {
        Some(Param::Text(value)) => Ok(value.as_deref().map(str::to_owned)),
        Some(Param::Texts(values)) => Ok(values[row].as_deref().map(str::to_owned)),
        _ => Err(other(name)),
    };
    let int = |name: &str| match given(name) {
        Some(Param::Int(value)) => Ok(*value),
        Some(Param::Ints(values)) => Ok(values[row]),
        _ => Err(other(name)),
    };
    let delay = int("delay")?.map(|delay| now.saturating_add(delay.min(micros(Duration::MAX))));
    let available_at = int("available_at")?.or(delay);
    let content = Content {
        id: match given("id") {
            Some(Param::Uuid(id)) => *id,
            Some(Param::Uuids(ids)) => ids[row],
            _ => return Err(other("id")),
        },
        topic: text("topic")?.unwrap_or_default(),
        payload: match given("payload") {
            Some(Param::Bytes(bytes)) => bytes.to_vec(),
            Some(Param::Blobs(blobs)) => blobs[row].to_vec(),
            _ => return Err(other("payload")),
        },
        content_type: text("content_type")?,
        headers: text("headers")?,
        key: text("key")?,
        aggregate_type: text("aggregate_type")?,
        aggregate_id: text("aggregate_id")?,
        schema_version: int("schema_version")?.map(i32::try_from).transpose()?,
        idempotency_key: text("idempotency_key")?,
        expires_at: int("expires_at")?,
        priority: int("priority")?.unwrap_or_default().try_into()?,
        max_attempts: int("max_attempts")?.map(u32::try_from).transpose()?,
        created_at: now,
    };
    Ok((content, available_at.filter(|at| *at > now)))
}

/// A time of the server's clock.
pub(crate) fn time(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 {
        UNIX_EPOCH - distance
    } else {
        UNIX_EPOCH + distance
    }
}

mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}
