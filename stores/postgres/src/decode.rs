//! Converts the driver's values to ours.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use sendoff::columns::{ColumnSource, Positions, ShownPositions, position};
use sendoff::store::{Lane, Outgoing, Row, RowRef, Stored, Table};
use sendoff::{Result, Uuid};
use tokio_postgres::types::{FromSql, Type};

use crate::error::from_driver;
use crate::read::WHAT;
use crate::tid::Tid;

/// One value of an answer.
pub(crate) fn column<'a, T: FromSql<'a>>(what: &str, row: &'a tokio_postgres::Row, at: usize) -> Result<T> {
    row.try_get(at).map_err(|error| from_driver(what, error))
}

/// One value of an answer with few rows, by the name of its column.
pub(crate) fn named<'a, T: FromSql<'a>>(what: &str, row: &'a tokio_postgres::Row, name: &str) -> Result<T> {
    row.try_get(name).map_err(|error| from_driver(what, error))
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

/// Where the columns of a statement of `read_ready.sql` or `read_due.sql` are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadColumns {
    lane: usize,
    seq: usize,
    /// Of the waiting table.
    waiting: Option<[usize; 2]>,
    expired: usize,
    /// Of the ready table.
    locator: Option<usize>,
    message: Positions,
}

impl ReadColumns {
    pub(crate) fn of(row: &tokio_postgres::Row) -> Result<Self> {
        let names = names(row);
        let sink = position(&names, "sink").ok();
        Ok(Self {
            lane: position(&names, "lane")?,
            seq: position(&names, "seq")?,
            waiting: match sink {
                Some(sink) => Some([sink, position(&names, "attempts")?]),
                None => None,
            },
            expired: position(&names, "expired")?,
            locator: position(&names, "locator").ok(),
            message: Positions::find(&names)?,
        })
    }

    /// Looked up in the first row of a statement.
    pub(crate) fn once(columns: &OnceLock<Self>, row: &tokio_postgres::Row) -> Result<Self> {
        if let Some(columns) = columns.get() {
            return Ok(*columns);
        }
        let found = Self::of(row)?;
        Ok(*columns.get_or_init(|| found))
    }

    /// Its lane; `None` for the row that is about the statement itself.
    pub(crate) fn lane(&self, row: &tokio_postgres::Row) -> Result<Option<Lane>> {
        Ok(column::<Option<i16>>(WHAT, row, self.lane)?.map(i16::unsigned_abs))
    }

    /// Where the row is.
    pub(crate) fn row_ref(&self, row: &tokio_postgres::Row) -> Result<RowRef> {
        let sink = match self.waiting {
            Some([sink, _]) => Some(column::<&str>(WHAT, row, sink)?).filter(|sink| !sink.is_empty()),
            None => None,
        };
        Ok(RowRef {
            table: if self.waiting.is_some() {
                Table::Waiting
            } else {
                Table::Ready
            },
            lane: self.lane(row)?.unwrap_or_default(),
            seq: column(WHAT, row, self.seq)?,
            // It cannot be missing: the column is a UUID and not NULL.
            id: row.try_get::<_, Uuid>(self.message.id).unwrap_or_default().into(),
            sink: sink.map(Into::into),
            // A row without one is found by its number.
            locator: self
                .locator
                .and_then(|at| row.try_get::<_, Tid>(at).ok())
                .map_or(0, Tid::to_locator),
        })
    }

    /// The message in the row, or why there is none.
    pub(crate) fn row(&self, row: &tokio_postgres::Row) -> Result<Row> {
        let row_ref = self.row_ref(row)?;
        let expired = row.try_get(self.expired).unwrap_or(false);
        let attempts = self.waiting.map(|[_, attempts]| attempts);
        Ok(
            match Outgoing::read(&Source(row), &self.message, attempts, row_ref.clone()) {
                Ok(outgoing) if expired => Row::Expired(Arc::new(outgoing)),
                Ok(outgoing) => Row::Message(Arc::new(outgoing)),
                Err(why) => Row::Unreadable { row_ref, why },
            },
        )
    }
}

/// The names of the columns of a row.
pub(crate) fn names(row: &tokio_postgres::Row) -> Vec<&str> {
    row.columns().iter().map(tokio_postgres::Column::name).collect()
}

/// Messages as an operator is shown them.
pub(crate) fn shown(rows: &[tokio_postgres::Row]) -> Result<Vec<Stored>> {
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let columns = ShownPositions::find(&names(first))?;
    rows.iter().map(|row| Stored::read(&Source(row), &columns)).collect()
}

/// A row of the driver.
pub(crate) struct Source<'a>(pub(crate) &'a tokio_postgres::Row);

impl ColumnSource for Source<'_> {
    fn text(&self, at: usize) -> Result<Option<&str>, &'static str> {
        self.0.try_get(at).map_err(|_| "is not text")
    }

    fn bytes(&self, at: usize) -> Result<Option<&[u8]>, &'static str> {
        self.0.try_get(at).map_err(|_| "is not binary")
    }

    fn integer(&self, at: usize) -> Result<Option<i64>, &'static str> {
        let row = self.0;
        let number = match *row.columns()[at].type_() {
            Type::INT2 => row.try_get::<_, Option<i16>>(at).map(|number| number.map(i64::from)),
            Type::INT4 => row.try_get::<_, Option<i32>>(at).map(|number| number.map(i64::from)),
            Type::BOOL => row.try_get::<_, Option<bool>>(at).map(|is| is.map(i64::from)),
            _ => row.try_get(at),
        };
        number.map_err(|_| "is not an integer")
    }

    fn time(&self, at: usize) -> Result<Option<SystemTime>, &'static str> {
        self.0.try_get(at).map_err(|_| "is not a time")
    }

    fn uuid(&self, at: usize) -> Option<Uuid> {
        self.0.try_get(at).ok()
    }

    fn lossy(&self, at: usize) -> Option<String> {
        self.0.try_get(at).ok()?
    }
}
