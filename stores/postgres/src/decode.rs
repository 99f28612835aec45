//! Between the driver's values and ours.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sendoff::store::{Delivery, Lane, Place, Room, Row, RowId};
use sendoff::{Headers, Result, Uuid};
use tokio_postgres::types::FromSql;

use crate::error::from_driver;
use crate::tid::Tid;

/// What keeps a row from being a message, in words.
type Unreadable = String;

/// One value of an answer.
pub(crate) fn column<'a, T: FromSql<'a>>(what: &str, row: &'a tokio_postgres::Row, at: usize) -> Result<T> {
    row.try_get(at).map_err(|error| from_driver(what, error))
}

/// Lanes as the database keeps them.
pub(crate) fn smallints(lanes: &[Lane]) -> Vec<i16> {
    lanes.iter().copied().map(smallint).collect()
}

/// A lane as the database keeps it.
pub(crate) fn smallint(lane: Lane) -> i16 {
    i16::try_from(lane).unwrap_or(i16::MAX)
}

/// Microseconds, at most a hundred years, which every interval takes.
pub(crate) fn micros(duration: Duration) -> i64 {
    const LONGEST: i64 = 100 * 366 * 24 * 3600 * 1_000_000;
    i64::try_from(duration.as_micros()).map_or(LONGEST, |micros| micros.min(LONGEST))
}

/// A count as the database takes it.
pub(crate) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count as the database gives it.
pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The id of a row. It cannot be missing: the column is a UUID and not NULL.
pub(crate) fn row_id(row: &tokio_postgres::Row) -> RowId {
    row.try_get::<_, Uuid>(2).unwrap_or_default().into()
}

/// A row of the ready table.
pub(crate) fn ready_row(row: &tokio_postgres::Row, lane: Lane, seq: i64) -> Row {
    // A row without one is found by its number.
    let spot = row.try_get::<_, Tid>(18).map_or(0, Tid::to_spot);
    let place = Place {
        room: Room::Ready,
        lane,
        seq,
        id: row_id(row),
        leg: None,
        spot,
    };
    message(row, place, 0)
}

/// A row of the waiting table; its leg and attempts are behind the columns that both tables have.
pub(crate) fn waiting_row(row: &tokio_postgres::Row, lane: Lane, seq: i64, leg: Option<Arc<str>>) -> Row {
    let place = Place {
        room: Room::Waiting,
        lane,
        seq,
        id: row_id(row),
        leg,
        spot: 0,
    };
    match row.try_get::<_, i32>(18).map(u32::try_from) {
        Ok(Ok(attempts)) => message(row, place, attempts),
        _ => Row::Unreadable {
            place,
            why: "attempts is out of range".to_owned(),
        },
    }
}

fn message(row: &tokio_postgres::Row, place: Place, attempts: u32) -> Row {
    let expired = row.try_get(16).unwrap_or(false);
    match delivery(row, place.clone(), attempts) {
        Ok(delivery) if expired => Row::Expired(Arc::new(delivery)),
        Ok(delivery) => Row::Message(Arc::new(delivery)),
        Err(why) => Row::Unreadable { place, why },
    }
}

fn delivery(row: &tokio_postgres::Row, place: Place, attempts: u32) -> Result<Delivery, Unreadable> {
    let topic: String = get(row, 3, "topic")?;
    if topic.is_empty() {
        return Err("topic is empty".to_owned());
    }
    let headers = match get::<Option<&str>>(row, 6, "headers")? {
        None => Headers::new(),
        Some(text) => Headers::from_json(text).map_err(|error| error.to_string())?,
    };
    let max_attempts = match get::<Option<i16>>(row, 13, "max_attempts")? {
        None => None,
        Some(limit @ 1..) => Some(u32::from(limit.unsigned_abs())),
        Some(_) => return Err("max_attempts is out of range".to_owned()),
    };
    Ok(Delivery {
        id: get::<Uuid>(row, 2, "id")?,
        topic,
        payload: Bytes::copy_from_slice(get(row, 4, "payload")?),
        content_type: get(row, 5, "content_type")?,
        headers,
        key: get(row, 7, "key")?,
        aggregate_type: get(row, 8, "aggregate_type")?,
        aggregate_id: get(row, 9, "aggregate_id")?,
        schema_version: get(row, 10, "schema_version")?,
        idempotency_key: get(row, 11, "idempotency_key")?,
        priority: get(row, 12, "priority")?,
        created_at: get::<SystemTime>(row, 14, "created_at")?,
        expires_at: get(row, 15, "expires_at")?,
        attempts,
        max_attempts,
        place,
    })
}

fn get<'a, T: FromSql<'a>>(row: &'a tokio_postgres::Row, at: usize, name: &str) -> Result<T, Unreadable> {
    row.try_get(at)
        .map_err(|_| format!("{name} has a type that is not the outbox's"))
}
