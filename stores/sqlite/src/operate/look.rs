//! Reads messages for operators. It changes nothing.

use std::time::{Duration, SystemTime};

use rusqlite::{Connection, Row, params_from_iter};
use sendoff::store::{Backlog, Filter, Stored, Summary};
use sendoff::{Result, Uuid};

use super::filter::{spellings, values};
use crate::clock::to_time;
use crate::decode::{Source, shown_columns};
use crate::store::Inner;

impl Inner {
    pub(super) async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.find.first())?;
            let columns = shown_columns(&statement)?;
            let row = |row: &Row<'_>| Ok(Stored::read(&Source(row), &columns));
            let rows = statement.query_map([spellings(&[id])], row)?;
            rows.collect::<rusqlite::Result<Result<Vec<Stored>>>>()
        };
        self.operate.call("the message could not be looked up", work).await?
    }

    pub(super) async fn count(&self, filter: &Filter) -> Result<u64> {
        let (sql, values) = (self.sql.clone(), values(filter));
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.count.first())?;
            statement.query_row(params_from_iter(values), |row| count(row, 0))
        };
        self.operate.call("messages could not be counted", work).await
    }

    pub(super) async fn now(&self) -> Result<SystemTime> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.now.first())?;
            statement.query_row([], |row| row.get(0).map(to_time))
        };
        self.operate.call("the database's time could not be read", work).await
    }

    pub(super) async fn summary(&self) -> Result<Summary> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            connection.prepare_cached(sql.summary.first())?.query_row([], |row| {
                let age = |at| -> rusqlite::Result<Option<Duration>> {
                    let micros = row.get::<_, Option<i64>>(at)?;
                    Ok(micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or_default())))
                };
                Ok(Summary {
                    ready: count(row, 0)?,
                    waiting: count(row, 1)?,
                    failed: count(row, 2)?,
                    dead: count(row, 3)?,
                    delivered: count(row, 4)?,
                    oldest_ready: age(5)?,
                    oldest_pending: age(5)?.max(age(6)?),
                })
            })
        };
        self.operate.call("the summary could not be read", work).await
    }

    pub(crate) async fn backlog(&self) -> Result<Backlog> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            connection.prepare_cached(sql.backlog.first())?.query_row([], |row| {
                Ok(Backlog {
                    ready: count(row, 0)?,
                    due: count(row, 1)?,
                    waiting: count(row, 2)?,
                    dead: count(row, 3)?,
                })
            })
        };
        self.operate.call("the backlog could not be counted", work).await
    }
}

/// A count of rows.
pub(super) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
}
