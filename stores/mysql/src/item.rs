//! A row that is due as an item.

use std::time::UNIX_EPOCH;

use bytes::Bytes;
use mysql_async::{Row, Value};
use sendoff::store::{Claim, Item};
use sendoff::{Headers, Result, Uuid};

use crate::decode::{number, small, string, text_or_null, to_time, value};

/// A row of `claim_items.sql`.
pub(crate) struct Due {
    /// As it is handed out, or given up.
    pub(crate) claim: Claim,
    /// Or why it has to be given up.
    pub(crate) item: Result<Item, String>,
    /// How long its payload is.
    pub(crate) bytes: usize,
    /// Its payload was left out, because it is large.
    pub(crate) is_large: bool,
}

pub(crate) fn due(what: &str, row: &Row) -> Result<Due> {
    let claim = Claim {
        seq: number(what, row, 0)?,
        number: drawn(),
    };
    let item = match text_or_null(what, row, 16)? {
        Some(why) => Err(why),
        None => item(row, claim).map_err(|why| format!("it is unreadable: {why}")),
    };
    let bytes = usize::try_from(number(what, row, 17)?).unwrap_or_default();
    let is_large = bytes > 0 && *value(row, 3) == Value::NULL;
    Ok(Due {
        claim,
        item,
        bytes,
        is_large,
    })
}

/// The number of a hand-out, by lot: a counter would begin again at an old number after a failover.
fn drawn() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    i64::try_from((high ^ low) >> 1).map_or(1, |number| number.max(1))
}

fn item(row: &Row, claim: Claim) -> Result<Item, String> {
    let topic = string(row, 2, "topic")?.unwrap_or_default();
    if topic.is_empty() {
        return Err("topic is empty".to_owned());
    }
    let id = string(row, 1, "id")?.unwrap_or_default();
    let headers = match string(row, 5, "headers")? {
        None => Headers::new(),
        Some(json) => Headers::from_json(&json).map_err(|error| error.to_string())?,
    };
    Ok(Item {
        claim,
        id: Uuid::parse_str(&id).map_err(|_| "id is no UUID".to_owned())?,
        topic,
        payload: match value(row, 3) {
            Value::Bytes(bytes) => Bytes::copy_from_slice(bytes),
            // It comes by itself.
            Value::NULL => Bytes::new(),
            _ => return Err("payload is no bytes".to_owned()),
        },
        content_type: string(row, 4, "content_type")?,
        headers,
        key: string(row, 6, "key")?,
        aggregate_type: string(row, 7, "aggregate_type")?,
        aggregate_id: string(row, 8, "aggregate_id")?,
        schema_version: small(row, 9, "schema_version")?,
        idempotency_key: string(row, 10, "idempotency_key")?,
        priority: small(row, 11, "priority")?.unwrap_or_default(),
        created_at: small::<i64>(row, 12, "created_at")?.map_or(UNIX_EPOCH, to_time),
        expires_at: small(row, 13, "expires_at")?.map(to_time),
        attempt: small(row, 14, "attempts")?.unwrap_or(1),
        max_attempts: small(row, 15, "max_attempts")?.unwrap_or(1),
    })
}
