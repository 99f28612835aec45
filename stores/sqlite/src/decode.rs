//! Converts a row to a message. An invalid row, which another program may have written, never affects the other rows of
//! a page.

use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::types::ValueRef;
use rusqlite::{Row as SqliteRow, Statement};
use sendoff::columns::{ColumnSource, Positions, ShownPositions, position};
use sendoff::store::{Outgoing, Row, RowRef, Table};

use crate::clock::to_time;
use crate::row_id;

/// The delivery of a row that names one.
pub(crate) fn sink(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}

/// Where the columns of a statement of `read_ready.sql` or `read_due.sql` are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadColumns {
    seq: usize,
    lane: usize,
    /// A ready row was never tried.
    attempts: Option<usize>,
    message: Positions,
}

impl ReadColumns {
    pub(crate) fn of(statement: &Statement<'_>) -> rusqlite::Result<Self> {
        let names = statement.column_names();
        Ok(Self {
            seq: position(&names, "seq").map_err(missing)?,
            lane: position(&names, "lane").map_err(missing)?,
            attempts: position(&names, "attempts").ok(),
            message: Positions::find(&names).map_err(missing)?,
        })
    }

    /// The place of a ready row.
    pub(crate) fn ready_row_ref(&self, row: &SqliteRow<'_>) -> rusqlite::Result<RowRef> {
        ready_row_ref(row, [self.seq, self.lane, self.message.id])
    }

    /// A row as it is at this time.
    pub(crate) fn row(&self, found: &SqliteRow<'_>, row_ref: RowRef, now: SystemTime) -> Row {
        match Outgoing::read(&Source(found), &self.message, self.attempts, row_ref.clone()) {
            Ok(outgoing) if outgoing.expires_at.is_some_and(|at| at <= now) => Row::Expired(Arc::new(outgoing)),
            Ok(outgoing) => Row::Message(Arc::new(outgoing)),
            Err(why) => Row::Unreadable { row_ref, why },
        }
    }
}

/// Where the columns are that an operator is shown.
pub(crate) fn shown_columns(statement: &Statement<'_>) -> rusqlite::Result<ShownPositions> {
    ShownPositions::find(&statement.column_names()).map_err(missing)
}

/// The driver has no kind for it; this one is shown in the words of its source.
pub(crate) fn missing(error: sendoff::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// The place of a ready row, with its number, lane and id in these columns.
pub(crate) fn ready_row_ref(row: &SqliteRow<'_>, [seq, lane, id]: [usize; 3]) -> rusqlite::Result<RowRef> {
    Ok(RowRef {
        table: Table::Ready,
        seq: row.get(seq)?,
        lane: row.get(lane)?,
        id: row_id::read(row.get_ref(id)?),
        sink: None,
        locator: 0,
    })
}

/// Its size in bytes. Unreadable rows count, too, because they were read.
pub(crate) fn size(found: &SqliteRow<'_>, row: &Row) -> usize {
    let bytes = |at| found.get_ref(at).ok()?.as_bytes_or_null().ok()?.map(<[u8]>::len);
    match row {
        Row::Message(_) | Row::Expired(_) => row.bytes(),
        Row::Unreadable { .. } => (0..found.as_ref().column_count()).filter_map(bytes).sum(),
    }
}

/// A row of the driver.
pub(crate) struct Source<'a, 'stmt>(pub(crate) &'a SqliteRow<'stmt>);

impl Source<'_, '_> {
    fn value(&self, at: usize) -> Result<ValueRef<'_>, &'static str> {
        self.0.get_ref(at).map_err(|_| "cannot be read")
    }
}

impl ColumnSource for Source<'_, '_> {
    fn text(&self, at: usize) -> Result<Option<&str>, &'static str> {
        match self.value(at)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes).map(Some).map_err(|_| "is not UTF-8"),
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => Err("is not text"),
        }
    }

    fn bytes(&self, at: usize) -> Result<Option<&[u8]>, &'static str> {
        match self.value(at)? {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Ok(Some(bytes)),
            ValueRef::Integer(_) | ValueRef::Real(_) => Err("is neither bytes nor text"),
        }
    }

    fn integer(&self, at: usize) -> Result<Option<i64>, &'static str> {
        match self.value(at)? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => Ok(Some(number)),
            ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => Err("is not an integer"),
        }
    }

    fn time(&self, at: usize) -> Result<Option<SystemTime>, &'static str> {
        Ok(self.integer(at)?.map(to_time))
    }

    fn lossy(&self, at: usize) -> Option<String> {
        match self.value(at).ok()? {
            ValueRef::Null => None,
            ValueRef::Integer(number) => Some(number.to_string()),
            ValueRef::Real(number) => Some(number.to_string()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        }
    }
}
