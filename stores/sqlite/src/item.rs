//! A row that is due as an item.

use rusqlite::Row;
use sendoff::store::{Claim, Item};
use sendoff::{Headers, Uuid};

use crate::clock::to_time;
use crate::decode::{number, payload, small, text};

/// A row of `claim_items.sql`.
pub(crate) struct Due {
    pub(crate) seq: i64,
    /// The number that it has before it is handed out.
    pub(crate) had: i64,
    /// The number that it gets.
    pub(crate) number: i64,
    /// Or why it has to be given up.
    pub(crate) item: Result<Item, String>,
}

pub(crate) fn due(row: &Row<'_>) -> rusqlite::Result<Due> {
    let (seq, had) = (row.get(0)?, row.get(1)?);
    let number = claim_number();
    let claim = Claim { seq, number };
    let item = match row.get::<_, Option<String>>(17)? {
        Some(why) => Err(why),
        None => item(row, claim).map_err(|why| format!("it is unreadable: {why}")),
    };
    Ok(Due { seq, had, number, item })
}

/// A number that no other claim has, not even one of a history that a restored backup has ended: 63 random bits.
fn claim_number() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // The two highest bits of the lower half say which kind of UUID it is.
    let bits = low & (u64::MAX >> 2) | (high & 1) << 62;
    i64::try_from(bits).unwrap_or(i64::MAX).max(1)
}

fn item(row: &Row<'_>, claim: Claim) -> Result<Item, String> {
    let topic = text(row, 3, "topic")?.unwrap_or_default();
    if topic.is_empty() {
        return Err("the topic is empty".to_owned());
    }
    let id = text(row, 2, "id")?.unwrap_or_default();
    let headers = match text(row, 6, "headers")? {
        None => Headers::new(),
        Some(json) => Headers::from_json(&json).map_err(|error| error.what().to_owned())?,
    };
    Ok(Item {
        claim,
        id: Uuid::parse_str(&id).map_err(|_| "the id is not a UUID".to_owned())?,
        topic,
        payload: payload(row, 4)?,
        content_type: text(row, 5, "content_type")?,
        headers,
        key: text(row, 7, "key")?,
        aggregate_type: text(row, 8, "aggregate_type")?,
        aggregate_id: text(row, 9, "aggregate_id")?,
        schema_version: small(row, 10, "schema_version", i64::from(i32::MIN), i64::from(i32::MAX))?,
        idempotency_key: text(row, 11, "idempotency_key")?,
        priority: small(row, 12, "priority", i64::from(i16::MIN), i64::from(i16::MAX))?.unwrap_or_default(),
        created_at: to_time(number(row, 13, "created_at", i64::MIN, i64::MAX)?.unwrap_or_default()),
        expires_at: number(row, 14, "expires_at", i64::MIN, i64::MAX)?.map(to_time),
        attempt: small(row, 15, "attempts", 1, i64::from(i32::MAX))?.unwrap_or(1),
        max_attempts: small(row, 16, "max_attempts", 1, i64::from(i32::MAX))?.unwrap_or(1),
    })
}
