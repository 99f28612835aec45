//! Lists: the next number of a table, and the rows of some numbers.

use std::ops::RangeInclusive;

use mysql_async::params;
use sendoff::Result;
use sendoff::store::{Direction, EndedAt, Filter, ListTable, Looked, LookedEnded};

use super::filter::values;
use super::only;
use crate::decode::{count, from_time, limit, number, number_or_null, shown, time_or_null, to_time};
use crate::store::Inner;

const WHAT: &str = "messages could not be listed";

/// The end of the year 9999, in microseconds: the last time that the server knows.
const LAST: i64 = 253_402_300_799_000_000;

impl Inner {
    pub(crate) async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>> {
        let sql = &self.lists[table.index()][direction.index()].next;
        let rows = self.operate_pool.rows(WHAT, sql, params! { "seq" => from }).await?;
        number_or_null(WHAT, only(WHAT, &rows)?, 0)
    }

    pub(crate) async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        most: usize,
    ) -> Result<Looked> {
        let texts = &self.lists[table.index()][direction.index()];
        let (first, last) = numbers.into_inner();
        let mut values = values(filter);
        values.extend([
            ("limit", limit(most).into()),
            ("first", first.into()),
            ("last", last.into()),
        ]);
        let rows = self.operate_pool.rows(WHAT, &texts.page, values).await?;
        let numbers = params! { "first" => first, "last" => last };
        let looked = self.operate_pool.rows(WHAT, &texts.looked, numbers).await?;
        let looked = only(WHAT, &looked)?;
        Ok(Looked {
            messages: shown(&rows)?,
            rows: count(number(WHAT, looked, 0)?),
            oldest: time_or_null(WHAT, looked, 1)?,
            newest: time_or_null(WHAT, looked, 2)?,
        })
    }

    pub(crate) async fn look_ended(
        &self,
        table: ListTable,
        filter: &Filter,
        from: Option<EndedAt>,
        direction: Direction,
        rows: usize,
        most: usize,
    ) -> Result<LookedEnded> {
        if !matches!(table, ListTable::Dead | ListTable::Delivered) {
            return Ok(LookedEnded::default());
        }
        let texts = &self.lists[table.index()][direction.index()];
        let (at, seq) = match (from, direction) {
            (Some(from), _) => (from_time(from.at), from.seq),
            (None, Direction::NewestFirst) => (LAST, i64::MAX),
            (None, Direction::OldestFirst) => (0, i64::MIN),
        };
        let mut values = values(filter);
        values.extend([
            ("limit", limit(most).into()),
            ("at", at.into()),
            ("seq", seq.into()),
            ("rows", limit(rows).into()),
        ]);
        let found = self.operate_pool.rows(WHAT, &texts.ended, values).await?;
        let from = params! { "at" => at, "seq" => seq, "rows" => limit(rows) };
        let looked = self.operate_pool.rows(WHAT, &texts.looked_ended, from).await?;
        let mut answer = LookedEnded {
            messages: shown(&found)?,
            ..LookedEnded::default()
        };
        if let Some(row) = looked.first() {
            answer.rows = count(number(WHAT, row, 0)?);
            answer.last = Some(EndedAt {
                at: to_time(number(WHAT, row, 1)?),
                seq: number(WHAT, row, 2)?,
            });
        }
        Ok(answer)
    }
}
