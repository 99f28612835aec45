//! What is in a message: out of an emit statement, into what a sink is handed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use sendoff::columns::parameter;
use sendoff::emit::Param;
use sendoff::store::{Lane, Outgoing, RowRef, Table};
use sendoff::{BoxError, Headers, Uuid};

use super::Lanes;
use super::clock::{Micros, time};
use super::tables::UNROUTED;

/// What the producer said, and when.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Content {
    pub(super) id: Uuid,
    pub(super) topic: String,
    pub(super) payload: Bytes,
    pub(super) content_type: Option<String>,
    pub(super) headers: Headers,
    pub(super) key: Option<String>,
    pub(super) aggregate_type: Option<String>,
    pub(super) aggregate_id: Option<String>,
    pub(super) schema_version: Option<i32>,
    pub(super) idempotency_key: Option<String>,
    pub(super) priority: i16,
    pub(super) max_attempts: Option<u32>,
    pub(super) created_at: Micros,
    pub(super) available_at: Option<Micros>,
    pub(super) expires_at: Option<Micros>,
}

impl Content {
    /// The lane, by the key, or by the id where there is no key.
    pub(super) fn lane(&self, lanes: Lanes) -> Lane {
        let Lanes { common, priority } = lanes;
        match (&self.key, self.priority) {
            (Some(key), _) => bucket(key, common),
            (None, 0) => bucket(&self.id, common),
            (None, 1..) => common + bucket(&self.id, priority),
            (None, _) => common + priority + bucket(&self.id, priority),
        }
    }

    pub(super) fn outgoing(&self, table: Table, lane: Lane, seq: i64, sink: &Arc<str>, attempts: u32) -> Outgoing {
        Outgoing {
            id: self.id,
            topic: self.topic.clone(),
            payload: self.payload.clone(),
            content_type: self.content_type.clone(),
            headers: self.headers.clone(),
            key: self.key.clone(),
            aggregate_type: self.aggregate_type.clone(),
            aggregate_id: self.aggregate_id.clone(),
            schema_version: self.schema_version,
            idempotency_key: self.idempotency_key.clone(),
            priority: self.priority,
            created_at: time(self.created_at),
            expires_at: self.expires_at.map(time),
            attempts,
            max_attempts: self.max_attempts,
            row_ref: RowRef {
                table,
                lane,
                seq,
                id: self.id.into(),
                sink: (**sink != *UNROUTED).then(|| sink.clone()),
                locator: 0,
            },
        }
    }
}

fn bucket(value: &impl Hash, count: Lane) -> Lane {
    // The hasher starts from fixed keys, so a simulation repeats itself.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    (hasher.finish() % u64::from(count)) as Lane
}

/// The rows of an emit statement: its values in the order of its placeholders, each one or an array.
pub(super) fn contents(params: &[Param<'_>], now: Micros) -> Result<Vec<Content>, BoxError> {
    let count = match params.first() {
        Some(Param::Uuids(ids)) => ids.len(),
        _ => 1,
    };
    (0..count).map(|row| content(params, row, now)).collect()
}

fn content(params: &[Param<'_>], row: usize, now: Micros) -> Result<Content, BoxError> {
    let given = |name: &str| parameter(name).and_then(|place| params.get(place));
    let text = |name: &str| match given(name) {
        Some(Param::Text(value)) => Ok(value.as_deref().map(str::to_owned)),
        Some(Param::Texts(values)) => Ok(values[row].as_deref().map(str::to_owned)),
        other => Err(unexpected(name, other)),
    };
    let int = |name: &str| match given(name) {
        Some(Param::Int(value)) => Ok(*value),
        Some(Param::Ints(values)) => Ok(values[row]),
        other => Err(unexpected(name, other)),
    };
    Ok(Content {
        id: match given("id") {
            Some(Param::Uuid(id)) => *id,
            Some(Param::Uuids(ids)) => ids[row],
            other => return Err(unexpected("id", other)),
        },
        topic: text("topic")?.unwrap_or_default(),
        payload: match given("payload") {
            Some(Param::Bytes(bytes)) => Bytes::copy_from_slice(bytes),
            Some(Param::Blobs(blobs)) => Bytes::copy_from_slice(blobs[row]),
            other => return Err(unexpected("payload", other)),
        },
        content_type: text("content_type")?,
        headers: text("headers")?
            .map(|json| Headers::from_json(&json))
            .transpose()?
            .unwrap_or_default(),
        key: text("key")?,
        aggregate_type: text("aggregate_type")?,
        aggregate_id: text("aggregate_id")?,
        schema_version: int("schema_version")?.map(i32::try_from).transpose()?,
        idempotency_key: text("idempotency_key")?,
        available_at: int("available_at")?.or(int("delay")?.map(|delay| now.saturating_add(delay))),
        expires_at: int("expires_at")?,
        priority: int("priority")?.unwrap_or_default().try_into()?,
        max_attempts: int("max_attempts")?.map(u32::try_from).transpose()?,
        created_at: now,
    })
}

fn unexpected(name: &str, value: Option<&Param<'_>>) -> BoxError {
    // The variant only: a value may be a secret.
    let kind = match value {
        None => "missing",
        Some(Param::Uuid(_) | Param::Uuids(_)) => "a UUID",
        Some(Param::Text(_) | Param::Texts(_)) => "text",
        Some(Param::Bytes(_) | Param::Blobs(_)) => "bytes",
        Some(Param::Int(_) | Param::Ints(_)) => "an integer",
    };
    format!("the value {name} of the emit statement is {kind}").into()
}
