//! Between the driver's values and ours. Values come as numbers or as text, depending on how a statement was sent.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use mysql_async::{Row as MysqlRow, Value};
use sendoff::store::{BlockedKey, Delivery, Lane, Place, Room, Row, RowId};
use sendoff::{Headers, Result, Uuid};

use crate::error::odd_answer;

/// What keeps a row from being a message, in words.
type Unreadable = String;

/// A whole number, or NULL.
pub(crate) fn number_or_null(what: &str, row: &MysqlRow, at: usize) -> Result<Option<i64>> {
    whole(value(row, at)).map_err(|()| odd_answer(what, format!("column {at} is no whole number")))
}

/// A whole number.
pub(crate) fn number(what: &str, row: &MysqlRow, at: usize) -> Result<i64> {
    number_or_null(what, row, at)?.ok_or_else(|| odd_answer(what, format!("column {at} is NULL")))
}

/// A lane.
pub(crate) fn lane(what: &str, row: &MysqlRow, at: usize) -> Result<Lane> {
    let number = number(what, row, at)?;
    Lane::try_from(number).map_err(|_| odd_answer(what, format!("{number} is no lane")))
}

/// Text, or NULL.
pub(crate) fn text_or_null(what: &str, row: &MysqlRow, at: usize) -> Result<Option<String>> {
    utf8(value(row, at)).map_err(|()| odd_answer(what, format!("column {at} is no text")))
}

/// Text.
pub(crate) fn text(what: &str, row: &MysqlRow, at: usize) -> Result<String> {
    text_or_null(what, row, at)?.ok_or_else(|| odd_answer(what, format!("column {at} is NULL")))
}

/// The id of a row, byte by byte: a statement casts it to binary.
pub(crate) fn row_id(what: &str, row: &MysqlRow, at: usize) -> Result<RowId> {
    match value(row, at) {
        Value::Bytes(id) => Ok(RowId::from_text(id)),
        _ => Err(odd_answer(what, format!("column {at} is no id"))),
    }
}

pub(crate) fn row_id_or_null(row: &MysqlRow, at: usize) -> Option<RowId> {
    match value(row, at) {
        Value::Bytes(id) => Some(RowId::from_text(id)),
        _ => None,
    }
}

/// Text that may be anything in the table: what is not UTF-8 in it is replaced.
pub(crate) fn lossy_or_null(row: &MysqlRow, at: usize) -> Option<String> {
    match value(row, at) {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

/// A point in time, in microseconds, or NULL.
pub(crate) fn time_or_null(what: &str, row: &MysqlRow, at: usize) -> Result<Option<SystemTime>> {
    Ok(number_or_null(what, row, at)?.map(to_time))
}

/// A key as several statements return it, in hexadecimal. One that is not UTF-8 has no followers: its messages are
/// unreadable.
pub(crate) fn blocked_key(what: &str, row: &MysqlRow) -> Result<Option<BlockedKey>> {
    let (lane, key, leg) = (lane(what, row, 0)?, text(what, row, 1)?, text(what, row, 2)?);
    Ok(unhex(&key).zip(unhex(&leg)).map(|(key, leg)| BlockedKey {
        lane,
        key: key.into(),
        leg: leg.into(),
    }))
}

/// Text as it is put into statements: in hexadecimal, so that nothing in it means anything.
pub(crate) fn hex(text: &str) -> String {
    hex_of(text.as_bytes())
}

/// An id in the same way, as its row has it.
pub(crate) fn id_hex(id: &RowId) -> String {
    id.with_text(hex_of)
}

fn hex_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.map(|nibble| char::from(DIGITS[usize::from(nibble)])).collect()
}

/// What [`hex`] and the database's HEX wrote; `None` when it is not UTF-8.
pub(crate) fn unhex(digits: &str) -> Option<String> {
    String::from_utf8(unhex_bytes(digits)?).ok()
}

/// The same, whatever bytes these are.
pub(crate) fn unhex_bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let bytes = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(16 * digit(high)? + digit(low)?).ok(),
        _ => None,
    });
    bytes.collect()
}

/// Microseconds, at most a hundred years, which every column takes.
pub(crate) fn micros(duration: Duration) -> i64 {
    const LONGEST: i64 = 100 * 366 * 24 * 3600 * 1_000_000;
    i64::try_from(duration.as_micros()).map_or(LONGEST, |micros| micros.min(LONGEST))
}

/// A point in time as statements take it.
pub(crate) fn from_time(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH)
        .map_or_else(|before| -micros(before.duration()), micros)
}

pub(crate) fn to_time(at: i64) -> SystemTime {
    let distance = Duration::from_micros(at.unsigned_abs());
    let time = if at < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}

/// A count as the database takes it.
pub(crate) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count as the database gives it.
pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Numbers as a list in a statement. None is a lane that does not exist.
pub(crate) fn list(lanes: &[Lane]) -> String {
    if lanes.is_empty() {
        return "-1".to_owned();
    }
    lanes.iter().map(Lane::to_string).collect::<Vec<_>>().join(", ")
}

/// A row of the contents of `read_ready.sql` or `read_due.sql`, whose columns are the same.
pub(crate) fn message(room: Room, row: &MysqlRow) -> Result<Row> {
    const WHAT: &str = "messages could not be read";
    let leg = unhex(&text(WHAT, row, 2)?).unwrap_or_default();
    let place = Place {
        room,
        lane: lane(WHAT, row, 0)?,
        seq: number(WHAT, row, 1)?,
        id: row_id(WHAT, row, 4)?,
        leg: (!leg.is_empty()).then(|| Arc::from(leg)),
        spot: 0,
    };
    let expired = number(WHAT, row, 18)? == 1;
    Ok(match delivery(row, place.clone()) {
        Ok(delivery) if expired => Row::Expired(Arc::new(delivery)),
        Ok(delivery) => Row::Message(Arc::new(delivery)),
        Err(why) => Row::Unreadable { place, why },
    })
}

fn delivery(row: &MysqlRow, place: Place) -> Result<Delivery, Unreadable> {
    let topic = string(row, 5, "topic")?.unwrap_or_default();
    if topic.is_empty() {
        return Err("topic is empty".to_owned());
    }
    let id = string(row, 4, "id")?.unwrap_or_default();
    let headers = match string(row, 8, "headers")? {
        None => Headers::new(),
        Some(json) => Headers::from_json(&json).map_err(|error| error.to_string())?,
    };
    Ok(Delivery {
        // Any of the usual ways to write a UUID, because other languages have other habits.
        id: Uuid::parse_str(&id).map_err(|_| "id is no UUID".to_owned())?,
        topic,
        payload: match value(row, 6) {
            Value::Bytes(bytes) => Bytes::copy_from_slice(bytes),
            _ => return Err("payload is no bytes".to_owned()),
        },
        content_type: string(row, 7, "content_type")?,
        headers,
        key: string(row, 9, "key")?,
        aggregate_type: string(row, 10, "aggregate_type")?,
        aggregate_id: string(row, 11, "aggregate_id")?,
        schema_version: small(row, 12, "schema_version")?,
        idempotency_key: string(row, 13, "idempotency_key")?,
        priority: small(row, 14, "priority")?.unwrap_or_default(),
        created_at: small::<i64>(row, 16, "created_at")?.map_or(UNIX_EPOCH, to_time),
        expires_at: small(row, 17, "expires_at")?.map(to_time),
        attempts: small(row, 3, "attempts")?.unwrap_or_default(),
        max_attempts: match small::<u32>(row, 15, "max_attempts")? {
            Some(0) => return Err("max_attempts is out of range".to_owned()),
            limit => limit,
        },
        place,
    })
}

pub(crate) fn small<T: TryFrom<i64>>(row: &MysqlRow, at: usize, name: &str) -> Result<Option<T>, Unreadable> {
    let number = whole(value(row, at)).map_err(|()| format!("{name} is no whole number"))?;
    let fit = number.map(|number| T::try_from(number).map_err(|_| format!("{name} is out of range")));
    fit.transpose()
}

pub(crate) fn string(row: &MysqlRow, at: usize, name: &str) -> Result<Option<String>, Unreadable> {
    utf8(value(row, at)).map_err(|()| format!("{name} is not UTF-8"))
}

pub(crate) fn value(row: &MysqlRow, at: usize) -> &Value {
    row.as_ref(at).unwrap_or(&Value::NULL)
}

fn whole(value: &Value) -> Result<Option<i64>, ()> {
    match value {
        Value::NULL => Ok(None),
        Value::Int(number) => Ok(Some(*number)),
        Value::UInt(number) => i64::try_from(*number).map(Some).map_err(drop),
        Value::Bytes(digits) => {
            let digits = std::str::from_utf8(digits).map_err(drop)?;
            digits.parse().map(Some).map_err(drop)
        }
        Value::Float(_) | Value::Double(_) | Value::Date(..) | Value::Time(..) => Err(()),
    }
}

fn utf8(value: &Value) -> Result<Option<String>, ()> {
    match value {
        Value::NULL => Ok(None),
        Value::Bytes(bytes) => String::from_utf8(bytes.clone()).map(Some).map_err(drop),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_hexadecimal() {
        for text in ["", "a b", "\0'\"\\", "ключ 🔑"] {
            assert_eq!(unhex(&hex(text)).as_deref(), Some(text));
        }
        assert_eq!(hex("k "), "6B20");
        assert!(["F", "GG", "FF"].iter().all(|bad| unhex(bad).is_none()));
    }

    #[test]
    fn times_survive_the_table() {
        for at in [0, 1, -1, 1_790_000_000_123_456] {
            assert_eq!(from_time(to_time(at)), at);
        }
    }

    #[test]
    fn a_list_is_never_empty() {
        assert_eq!((list(&[]), list(&[3, 79])), ("-1".to_owned(), "3, 79".to_owned()));
    }
}
