//! A message as it comes out of a store.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use uuid::Uuid;

use super::RowId;
use crate::{Headers, message::JSON};

/// One of the hash buckets that the ready table is divided into, and that relays lease.
pub type Lane = u16;

/// Which table a row is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Room {
    /// Ready: not tried yet, for all its sinks.
    Ready,
    /// Waiting: for one sink, or scheduled and not routed yet.
    Waiting,
}

/// Where a row is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Its table.
    pub room: Room,
    /// Its lane.
    pub lane: Lane,
    /// The number that the database gave it when it was emitted; grows within a lane. Numbers repeat when the database's
    /// history changes, as after a failover: a row is only meant when its id is the same, too.
    pub seq: i64,
    /// The id of its message, as the table has it.
    pub id: RowId,
    /// The sink that it waits for; `None` when it has not been routed yet.
    pub leg: Option<Arc<str>>,
    /// Where in its table, for a store that finds it faster so when it settles; 0 if it does not matter. Only the store
    /// that gave it knows what it means.
    pub spot: u64,
}

/// A message on its way to a sink.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Its id: the same in every copy.
    pub id: Uuid,
    /// What routes act on.
    pub topic: String,
    /// Exactly the bytes that were emitted.
    pub payload: Bytes,
    /// `None` is JSON; see [`Delivery::content_type`].
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
    /// Above 0 before, below 0 after others.
    pub priority: i16,
    /// When its transaction began, by the database's clock.
    pub created_at: SystemTime,
    /// Not delivered after this.
    pub expires_at: Option<SystemTime>,
    /// How many attempts failed so far, at this leg.
    pub attempts: u32,
    /// Its own limit of attempts.
    pub max_attempts: Option<u32>,
    /// Where its row is.
    pub place: Place,
}

impl Delivery {
    /// The content type of the payload.
    pub fn content_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or(JSON)
    }

    /// How many bytes its payload, its headers and its texts have.
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
