//! Converts the driver's values to ours. A value is a number or text, depending on how the statement was sent.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mysql_async::{Column, Row as MysqlRow, Value};
use sendoff::Result;
pub(crate) use sendoff::columns::time_at as to_time;
use sendoff::columns::{ColumnSource, Positions, ShownPositions, position};
use sendoff::store::{BlockedKey, Lane, Outgoing, Row, RowId, RowRef, Stored, Table};

use crate::error::odd_answer;

/// A whole number, or NULL.
pub(crate) fn number_or_null(what: &str, row: &MysqlRow, at: usize) -> Result<Option<i64>> {
    whole(value(row, at)).map_err(|()| odd_answer(what, format!("column {at} is not an integer")))
}

/// A whole number.
pub(crate) fn number(what: &str, row: &MysqlRow, at: usize) -> Result<i64> {
    number_or_null(what, row, at)?.ok_or_else(|| odd_answer(what, format!("column {at} is NULL")))
}

/// A lane.
pub(crate) fn lane(what: &str, row: &MysqlRow, at: usize) -> Result<Lane> {
    let number = number(what, row, at)?;
    Lane::try_from(number).map_err(|_| odd_answer(what, format!("{number} is not a lane")))
}

/// Text, or NULL.
pub(crate) fn text_or_null(what: &str, row: &MysqlRow, at: usize) -> Result<Option<String>> {
    utf8(value(row, at)).map_err(|()| odd_answer(what, format!("column {at} is not text")))
}

/// Text.
pub(crate) fn text(what: &str, row: &MysqlRow, at: usize) -> Result<String> {
    text_or_null(what, row, at)?.ok_or_else(|| odd_answer(what, format!("column {at} is NULL")))
}

/// The id of a row, byte by byte: a statement casts it to binary.
pub(crate) fn row_id(what: &str, row: &MysqlRow, at: usize) -> Result<RowId> {
    match value(row, at) {
        Value::Bytes(id) => Ok(RowId::from_text(id)),
        _ => Err(odd_answer(what, format!("column {at} is not an id"))),
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
    let (lane, key, sink) = (lane(what, row, 0)?, text(what, row, 1)?, text(what, row, 2)?);
    Ok(unhex(&key).zip(unhex(&sink)).map(|(key, sink)| BlockedKey {
        lane,
        key: key.into(),
        sink: sink.into(),
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

/// Where the columns of the contents in `read_ready.sql` or `read_due.sql` are.
#[derive(Clone, Copy)]
pub(crate) struct ReadColumns {
    lane: usize,
    seq: usize,
    sink: usize,
    attempts: usize,
    expired: usize,
    message: Positions,
}

impl ReadColumns {
    pub(crate) fn of(row: &MysqlRow) -> Result<Self> {
        let columns = row.columns_ref();
        let names = names(columns);
        Ok(Self {
            lane: position(&names, "lane")?,
            seq: position(&names, "seq")?,
            sink: position(&names, "sink")?,
            attempts: position(&names, "attempts")?,
            expired: position(&names, "expired")?,
            message: Positions::find(&names)?,
        })
    }

    /// A row of this table.
    pub(crate) fn row(&self, table: Table, row: &MysqlRow) -> Result<Row> {
        const WHAT: &str = "messages could not be read";
        let sink = unhex(&text(WHAT, row, self.sink)?).unwrap_or_default();
        let row_ref = RowRef {
            table,
            lane: lane(WHAT, row, self.lane)?,
            seq: number(WHAT, row, self.seq)?,
            id: row_id(WHAT, row, self.message.id)?,
            sink: (!sink.is_empty()).then(|| Arc::from(sink)),
            locator: 0,
        };
        let expired = number(WHAT, row, self.expired)? == 1;
        Ok(
            match Outgoing::read(&Source(row), &self.message, Some(self.attempts), row_ref.clone()) {
                Ok(outgoing) if expired => Row::Expired(Arc::new(outgoing)),
                Ok(outgoing) => Row::Message(Arc::new(outgoing)),
                Err(why) => Row::Unreadable { row_ref, why },
            },
        )
    }
}

/// The names of columns. One that is not UTF-8 is none of ours.
pub(crate) fn names(columns: &[Column]) -> Vec<&str> {
    let name = |column| std::str::from_utf8(Column::name_ref(column)).unwrap_or_default();
    columns.iter().map(name).collect()
}

/// Messages as an operator is shown them.
pub(crate) fn shown(rows: &[MysqlRow]) -> Result<Vec<Stored>> {
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let columns = ShownPositions::find(&names(first.columns_ref()))?;
    rows.iter().map(|row| Stored::read(&Source(row), &columns)).collect()
}

/// A row of the driver.
pub(crate) struct Source<'a>(pub(crate) &'a MysqlRow);

impl ColumnSource for Source<'_> {
    fn text(&self, at: usize) -> Result<Option<&str>, &'static str> {
        match value(self.0, at) {
            Value::NULL => Ok(None),
            Value::Bytes(bytes) => std::str::from_utf8(bytes).map(Some).map_err(|_| "is not UTF-8"),
            _ => Err("is not text"),
        }
    }

    fn bytes(&self, at: usize) -> Result<Option<&[u8]>, &'static str> {
        match value(self.0, at) {
            Value::NULL => Ok(None),
            Value::Bytes(bytes) => Ok(Some(bytes)),
            _ => Err("is not binary"),
        }
    }

    fn integer(&self, at: usize) -> Result<Option<i64>, &'static str> {
        whole(value(self.0, at)).map_err(|()| "is not an integer")
    }

    fn time(&self, at: usize) -> Result<Option<SystemTime>, &'static str> {
        Ok(self.integer(at)?.map(to_time))
    }
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
