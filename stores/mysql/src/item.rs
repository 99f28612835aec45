//! A row that is due as an item.

use std::time::UNIX_EPOCH;

use bytes::Bytes;
use mysql_async::{Row, Value};
use sendoff::store::{Claim, Item};
use sendoff::{Headers, Result, Uuid};

use crate::decode::{number, small, string, text_or_null, to_time, value};

/// A row of `claim_items.sql`.
pub(crate) struct Due {
    pub(crate) seq: i64,
    /// Or why it has to be given up.
    pub(crate) item: Result<Item, String>,
}

pub(crate) fn due(what: &str, row: &Row) -> Result<Due> {
    let seq = number(what, row, 0)?;
    // The row is locked, so the hand-out gets exactly the next number.
    let claim = Claim {
        seq,
        number: number(what, row, 1)? + 1,
    };
    let item = match text_or_null(what, row, 17)? {
        Some(why) => Err(why),
        None => item(row, claim).map_err(|why| format!("it is unreadable: {why}")),
    };
    Ok(Due { seq, item })
}

fn item(row: &Row, claim: Claim) -> Result<Item, String> {
    let topic = string(row, 3, "topic")?.unwrap_or_default();
    if topic.is_empty() {
        return Err("topic is empty".to_owned());
    }
    let id = string(row, 2, "id")?.unwrap_or_default();
    let headers = match string(row, 6, "headers")? {
        None => Headers::new(),
        Some(json) => Headers::from_json(&json).map_err(|error| error.to_string())?,
    };
    Ok(Item {
        claim,
        id: Uuid::parse_str(&id).map_err(|_| "id is no UUID".to_owned())?,
        topic,
        payload: match value(row, 4) {
            Value::Bytes(bytes) => Bytes::copy_from_slice(bytes),
            _ => return Err("payload is no bytes".to_owned()),
        },
        content_type: string(row, 5, "content_type")?,
        headers,
        key: string(row, 7, "key")?,
        aggregate_type: string(row, 8, "aggregate_type")?,
        aggregate_id: string(row, 9, "aggregate_id")?,
        schema_version: small(row, 10, "schema_version")?,
        idempotency_key: string(row, 11, "idempotency_key")?,
        priority: small(row, 12, "priority")?.unwrap_or_default(),
        created_at: small::<i64>(row, 13, "created_at")?.map_or(UNIX_EPOCH, to_time),
        expires_at: small(row, 14, "expires_at")?.map(to_time),
        attempt: small(row, 15, "attempts")?.unwrap_or(1),
        max_attempts: small(row, 16, "max_attempts")?.unwrap_or(1),
    })
}
