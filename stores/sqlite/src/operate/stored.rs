//! A row as an operator sees it: whatever is in it can be shown.

use rusqlite::Row;
use rusqlite::types::ValueRef;
use sendoff::Uuid;
use sendoff::store::{Status, Stored};

use crate::clock::to_time;

/// A row of `list.sql` or `find.sql`: the beginning of its payload comes with it, and how long that is.
pub(super) fn shown(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let payload_bytes = integer(row.get_ref(24)?).unwrap_or_default().unsigned_abs();
    Ok(Stored {
        payload_bytes,
        ..stored(row)?
    })
}

/// A row of `list.sql`, `find.sql` or `list_items.sql`, whose first columns are the same.
pub(crate) fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let text = |column| row.get_ref(column).map(text);
    let time = |column| row.get_ref(column).map(|value| integer(value).map(to_time));
    let number = |column| row.get_ref(column).map(integer);
    let payload = bytes(row.get_ref(13)?);
    Ok(Stored {
        status: status(&text(0)?.unwrap_or_default()),
        id: text(1)?.and_then(|id| Uuid::parse_str(&id).ok()),
        topic: text(2)?.unwrap_or_default(),
        leg: text(3)?.unwrap_or_default(),
        key: text(4)?,
        lane: number(5)?.unwrap_or_default(),
        seq: number(6)?.unwrap_or_default(),
        aggregate_type: text(7)?,
        aggregate_id: text(8)?,
        schema_version: number(9)?,
        idempotency_key: text(10)?,
        content_type: text(11)?,
        headers: text(12)?,
        payload_bytes: payload.len() as u64,
        payload,
        priority: number(14)?.unwrap_or_default(),
        attempts: number(15)?.unwrap_or_default(),
        max_attempts: number(16)?,
        last_error: text(17)?,
        detail: text(18)?,
        created_at: to_time(number(19)?.unwrap_or_default()),
        due_at: time(20)?,
        expires_at: time(21)?,
        ended_at: time(22)?,
        history: text(23)?,
    })
}

fn status(word: &str) -> Status {
    match word {
        "retry" => Status::Retry,
        "dead" => Status::Dead,
        "delivered" => Status::Delivered,
        _ => Status::Pending,
    }
}

fn bytes(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Null => Vec::new(),
        ValueRef::Integer(number) => number.to_string().into_bytes(),
        ValueRef::Real(number) => number.to_string().into_bytes(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
    }
}

fn text(value: ValueRef<'_>) -> Option<String> {
    (value != ValueRef::Null).then(|| String::from_utf8_lossy(&bytes(value)).into_owned())
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    }
}
