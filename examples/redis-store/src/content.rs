//! A message as a row keeps it: what its producer said.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sendoff::store::{Delivery, Place};
use sendoff::{Headers, Uuid};
use serde::{Deserialize, Serialize};

/// What stays the same wherever a message is.
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
    /// Reads a row; an error says what is wrong with it, without its contents.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes)
            .map_err(|error| format!("it is no message: {:?} at column {}", error.classify(), error.column()))
    }

    pub(crate) fn delivery(self, place: Place, attempts: u32) -> Result<Delivery, String> {
        let headers = match &self.headers {
            None => Headers::new(),
            Some(text) => Headers::from_json(text).map_err(|error| error.to_string())?,
        };
        Ok(Delivery {
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
            place,
        })
    }
}

/// A time of the server.
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
