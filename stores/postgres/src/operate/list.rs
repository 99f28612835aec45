//! Lists: the next number of a table, and the rows of some numbers.

use std::ops::RangeInclusive;
use std::time::SystemTime;

use sendoff::Result;
use sendoff::store::{Direction, EndedAt, Filter, ListTable, Looked, LookedEnded};
use tokio_postgres::types::Type;

use super::filter::Columns;
use super::only;
use crate::decode::{column, count, number, shown};
use crate::pipeline::Statement;
use crate::store::Inner;

const WHAT: &str = "messages could not be listed";

/// Before and after every time that is in a table.
const FIRST: i64 = 0;
const LAST: i64 = 253_402_300_799;

impl Inner {
    pub(crate) async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>> {
        let sql = &self.lists[table.index()][direction.index()].next;
        let rows = self.operate_pool.run(WHAT, sql, &[(&from, Type::INT8)]).await?;
        column(WHAT, only(WHAT, &rows)?, 0)
    }

    pub(crate) async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked> {
        let texts = &self.lists[table.index()][direction.index()];
        let (filter, limit) = (Columns::new(filter), number(limit));
        let (first, last) = numbers.into_inner();
        let mut params = filter.with_dead();
        params.extend([
            (&limit as _, Type::INT8),
            (&first as _, Type::INT8),
            (&last as _, Type::INT8),
        ]);
        let statements = [
            Statement {
                sql: &texts.page,
                params,
            },
            Statement {
                sql: &texts.looked,
                params: vec![(&first, Type::INT8), (&last, Type::INT8)],
            },
        ];
        let connection = self.operate_pool.get().await?;
        let found = connection.run_all(WHAT, &statements).await?;
        connection.give_back();
        let [rows, looked] = found.as_slice() else {
            return Err(crate::error::odd_answer(WHAT, "an answer is missing"));
        };
        let looked = only(WHAT, looked)?;
        Ok(Looked {
            messages: shown(rows)?,
            rows: count(column(WHAT, looked, 0)?),
            oldest: column(WHAT, looked, 1)?,
            newest: column(WHAT, looked, 2)?,
        })
    }

    pub(crate) async fn look_ended(
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
        let texts = &self.lists[table.index()][direction.index()];
        let (filter, rows, limit) = (Columns::new(filter), number(rows), number(limit));
        let from = from.unwrap_or_else(|| beginning(direction));
        let mut params = filter.with_dead();
        params.push((&limit, Type::INT8));
        params.push((&from.at, Type::TIMESTAMPTZ));
        params.push((&from.seq, Type::INT8));
        params.push((&rows, Type::INT8));
        let statements = [
            Statement {
                sql: &texts.ended,
                params,
            },
            Statement {
                sql: &texts.looked_ended,
                params: vec![
                    (&from.at, Type::TIMESTAMPTZ),
                    (&from.seq, Type::INT8),
                    (&rows, Type::INT8),
                ],
            },
        ];
        let connection = self.operate_pool.get().await?;
        let found = connection.run_all(WHAT, &statements).await?;
        connection.give_back();
        let [rows, looked] = found.as_slice() else {
            return Err(crate::error::odd_answer(WHAT, "an answer is missing"));
        };
        let mut answer = LookedEnded {
            messages: shown(rows)?,
            ..LookedEnded::default()
        };
        if let Some(row) = looked.first() {
            answer.rows = count(column(WHAT, row, 0)?);
            answer.last = Some(EndedAt {
                at: column(WHAT, row, 1)?,
                seq: column(WHAT, row, 2)?,
            });
        }
        Ok(answer)
    }
}

/// The place before all rows.
fn beginning(direction: Direction) -> EndedAt {
    let at = |seconds: i64| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds.unsigned_abs());
    match direction {
        Direction::NewestFirst => EndedAt {
            at: at(LAST),
            seq: i64::MAX,
        },
        Direction::OldestFirst => EndedAt {
            at: at(FIRST),
            seq: i64::MIN,
        },
    }
}
