//! A claimed row as an item.

use std::time::SystemTime;

use bytes::Bytes;
use sendoff::store::{Claim, Item};
use sendoff::{Headers, Result};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::decode::column;

/// A row of `claim_items.sql`.
pub(crate) struct Claimed {
    pub(crate) due: SystemTime,
    pub(crate) claim: Claim,
    /// Or what keeps it from being one, in words.
    pub(crate) item: Result<Item, String>,
}

/// `None` for the row that tells of items which became failed.
pub(crate) fn claimed(what: &str, row: &Row) -> Result<Option<Claimed>> {
    if column::<bool>(what, row, 0)? {
        return Ok(None);
    }
    let claim = Claim {
        seq: column(what, row, 2)?,
        number: column(what, row, 3)?,
    };
    Ok(Some(Claimed {
        due: column(what, row, 1)?,
        claim,
        item: item(row, claim),
    }))
}

fn item(row: &Row, claim: Claim) -> Result<Item, String> {
    let topic: String = get(row, 5, "topic")?;
    if topic.is_empty() {
        return Err("topic is empty".to_owned());
    }
    let headers = match get::<Option<&str>>(row, 8, "headers")? {
        None => Headers::new(),
        Some(text) => Headers::from_json(text).map_err(|error| error.to_string())?,
    };
    Ok(Item {
        claim,
        id: get(row, 4, "id")?,
        topic,
        payload: Bytes::copy_from_slice(get(row, 6, "payload")?),
        content_type: get(row, 7, "content_type")?,
        headers,
        key: get(row, 9, "key")?,
        aggregate_type: get(row, 10, "aggregate_type")?,
        aggregate_id: get(row, 11, "aggregate_id")?,
        schema_version: get(row, 12, "schema_version")?,
        idempotency_key: get(row, 13, "idempotency_key")?,
        priority: get(row, 14, "priority")?,
        created_at: get(row, 15, "created_at")?,
        expires_at: get(row, 16, "expires_at")?,
        attempt: get::<i32>(row, 17, "attempts")?.unsigned_abs(),
        max_attempts: get::<i32>(row, 18, "max_attempts")?.unsigned_abs(),
    })
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize, name: &str) -> Result<T, String> {
    row.try_get(at)
        .map_err(|_| format!("{name} has a type that is not the outbox's"))
}
