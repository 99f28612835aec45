//! A row as a message. Whatever another program wrote, one row never spoils the rest of a page.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::Row as SqliteRow;
use rusqlite::types::ValueRef;
use sendoff::store::{Delivery, Place, Room, Row};
use sendoff::{Headers, Uuid};

use crate::clock::to_time;
use crate::row_id;

/// The leg of a row that names one.
pub(crate) fn leg(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}

/// A row of `read_ready.sql` or `read_due.sql`, whose columns are the same.
pub(crate) fn row(row: &SqliteRow<'_>, place: Place) -> Row {
    match message(row, &place) {
        Ok((delivery, false)) => Row::Message(Arc::new(delivery)),
        Ok((delivery, true)) => Row::Expired(Arc::new(delivery)),
        Err(why) => Row::Unreadable { place, why },
    }
}

/// How many bytes it has. What is no message was read all the same.
pub(crate) fn size(found: &SqliteRow<'_>, row: &Row) -> usize {
    let bytes = |at| found.get_ref(at).ok()?.as_bytes_or_null().ok()?.map(<[u8]>::len);
    match row {
        Row::Message(_) | Row::Expired(_) => row.bytes(),
        Row::Unreadable { .. } => (ID..=ID + 9).filter_map(bytes).sum(),
    }
}

/// The column of the id in a row with its contents.
pub(crate) const ID: usize = 5;

/// The place of a ready row, whose id is in this column.
pub(crate) fn ready_place(row: &SqliteRow<'_>, id: usize) -> rusqlite::Result<Place> {
    Ok(Place {
        room: Room::Ready,
        seq: row.get(0)?,
        lane: row.get(1)?,
        id: row_id::read(row.get_ref(id)?),
        leg: None,
        spot: 0,
    })
}

type Unreadable = String;

fn message(row: &SqliteRow<'_>, place: &Place) -> Result<(Delivery, bool), Unreadable> {
    let expired = number(row, 4, "expires_at", 0, 1)? == Some(1);
    let topic = text(row, 6, "topic")?.unwrap_or_default();
    if topic.is_empty() {
        return Err("the topic is empty".to_owned());
    }
    let headers = match text(row, 9, "headers")? {
        None => Headers::new(),
        Some(json) => Headers::from_json(&json).map_err(|error| error.what().to_owned())?,
    };
    let delivery = Delivery {
        id: id(row, ID)?,
        topic,
        payload: payload(row, 7)?,
        content_type: text(row, 8, "content_type")?,
        headers,
        key: text(row, 10, "key")?,
        aggregate_type: text(row, 11, "aggregate_type")?,
        aggregate_id: text(row, 12, "aggregate_id")?,
        schema_version: small(row, 13, "schema_version", i64::from(i32::MIN), i64::from(i32::MAX))?,
        idempotency_key: text(row, 14, "idempotency_key")?,
        priority: small(row, 15, "priority", i64::from(i16::MIN), i64::from(i16::MAX))?.unwrap_or_default(),
        created_at: to_time(number(row, 16, "created_at", i64::MIN, i64::MAX)?.unwrap_or_default()),
        expires_at: number(row, 17, "expires_at", i64::MIN, i64::MAX)?.map(to_time),
        attempts: small(row, 3, "attempts", 0, i64::from(i32::MAX))?.unwrap_or_default(),
        max_attempts: small(row, 18, "max_attempts", 1, i64::from(i16::MAX))?,
        place: place.clone(),
    };
    Ok((delivery, expired))
}

/// Any of the usual ways to write a UUID, because other languages have other habits.
fn id(row: &SqliteRow<'_>, column: usize) -> Result<Uuid, Unreadable> {
    let text = text_in(row, column, "id")?.unwrap_or_default();
    Uuid::parse_str(text).map_err(|_| "the id is not a UUID".to_owned())
}

pub(crate) fn payload(row: &SqliteRow<'_>, column: usize) -> Result<Bytes, Unreadable> {
    match value(row, column, "payload")? {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Ok(Bytes::copy_from_slice(bytes)),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => {
            Err("the payload is neither bytes nor text".to_owned())
        }
    }
}

pub(crate) fn text(row: &SqliteRow<'_>, column: usize, name: &str) -> Result<Option<String>, Unreadable> {
    Ok(text_in(row, column, name)?.map(str::to_owned))
}

fn text_in<'a>(row: &'a SqliteRow<'_>, column: usize, name: &str) -> Result<Option<&'a str>, Unreadable> {
    match value(row, column, name)? {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(format!("the column {name} is not UTF-8")),
        },
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => Err(format!("the column {name} is no text")),
    }
}

pub(crate) fn small<T: TryFrom<i64>>(
    row: &SqliteRow<'_>,
    column: usize,
    name: &str,
    least: i64,
    most: i64,
) -> Result<Option<T>, Unreadable> {
    let out_of_range = || format!("the column {name} is out of range: {least} to {most}");
    match number(row, column, name, least, most)? {
        None => Ok(None),
        Some(number) => T::try_from(number).map(Some).map_err(|_| out_of_range()),
    }
}

pub(crate) fn number(
    row: &SqliteRow<'_>,
    column: usize,
    name: &str,
    least: i64,
    most: i64,
) -> Result<Option<i64>, Unreadable> {
    match value(row, column, name)? {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) if (least..=most).contains(&number) => Ok(Some(number)),
        ValueRef::Integer(_) => Err(format!("the column {name} is out of range: {least} to {most}")),
        ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
            Err(format!("the column {name} is no whole number"))
        }
    }
}

fn value<'a>(row: &'a SqliteRow<'_>, column: usize, name: &str) -> Result<ValueRef<'a>, Unreadable> {
    row.get_ref(column)
        .map_err(|_| format!("the column {name} cannot be read"))
}
