//! Lists: the next number of a table, and the rows of some numbers.

use std::ops::RangeInclusive;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use sendoff::Result;
use sendoff::store::{Direction, EndedAt, Filter, ListTable, Looked, LookedEnded, Stored};

use super::filter::{number, values};
use super::look::count;
use crate::clock::{from_time, to_time};
use crate::decode::{Source, shown_columns};
use crate::store::Inner;

const WHAT: &str = "messages could not be listed";

impl Inner {
    pub(super) async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>> {
        let sql = self.sql.clone();
        let work = move |connection: &mut Connection| {
            let text = &sql.lists[table.index()][direction.index()].next;
            connection.prepare_cached(text)?.query_row([from], |row| row.get(0))
        };
        self.operate.call(WHAT, work).await
    }

    pub(super) async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked> {
        let sql = self.sql.clone();
        let (first, last) = numbers.into_inner();
        let mut values = values(filter);
        values.extend([number(limit), first, last].map(Value::Integer));
        let work = move |connection: &mut Connection| {
            let texts = &sql.lists[table.index()][direction.index()];
            let mut statement = connection.prepare_cached(&texts.page)?;
            let columns = shown_columns(&statement)?;
            let rows = statement.query_map(params_from_iter(values), |row| Ok(Stored::read(&Source(row), &columns)))?;
            let messages = rows.collect::<rusqlite::Result<Result<Vec<Stored>>>>()?;
            let mut statement = connection.prepare_cached(&texts.looked)?;
            statement.query_row([first, last], |row| {
                let time = |column| row.get::<_, Option<i64>>(column).map(|at| at.map(to_time));
                let (rows, oldest, newest) = (count(row, 0)?, time(1)?, time(2)?);
                Ok(messages.map(|messages| Looked {
                    messages,
                    rows,
                    oldest,
                    newest,
                }))
            })
        };
        self.operate.call(WHAT, work).await?
    }

    pub(super) async fn look_ended(
        &self,
        table: ListTable,
        filter: &Filter,
        from: Option<EndedAt>,
        direction: Direction,
        rows: usize,
        limit: usize,
    ) -> Result<LookedEnded> {
        if !matches!(table, ListTable::Dead | ListTable::Delivered) {
            return Ok(LookedEnded::default());
        }
        let (at, seq) = match (from, direction) {
            (Some(from), _) => (from_time(from.at), from.seq),
            (None, Direction::NewestFirst) => (i64::MAX, i64::MAX),
            (None, Direction::OldestFirst) => (i64::MIN, i64::MIN),
        };
        let sql = self.sql.clone();
        let rows = number(rows);
        let mut values = values(filter);
        values.extend([number(limit), at, seq, rows].map(Value::Integer));
        let work = move |connection: &mut Connection| {
            let texts = &sql.lists[table.index()][direction.index()];
            let mut statement = connection.prepare_cached(&texts.ended)?;
            let columns = shown_columns(&statement)?;
            let found =
                statement.query_map(params_from_iter(values), |row| Ok(Stored::read(&Source(row), &columns)))?;
            let messages = found.collect::<rusqlite::Result<Result<Vec<Stored>>>>()?;
            let mut statement = connection.prepare_cached(&texts.looked_ended)?;
            let looked = statement.query_row([at, seq, rows], |row| {
                let last = EndedAt {
                    at: to_time(row.get(1)?),
                    seq: row.get(2)?,
                };
                Ok((count(row, 0)?, last))
            });
            let looked = looked.optional()?;
            Ok(messages.map(|messages| LookedEnded {
                messages,
                rows: looked.map_or(0, |(rows, _)| rows),
                last: looked.map(|(_, last)| last),
            }))
        };
        self.operate.call(WHAT, work).await?
    }
}
