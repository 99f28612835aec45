//! Makes waiting messages due.

use std::cmp::Ordering;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params_from_iter};
use sendoff::Result;
use sendoff::store::{Command, Filter, Lane, RetriedBatch, RetryOptions, RowRef, Table};

use super::act::Batch;
use super::filter::{number, values};
use super::look::count;
use crate::row_id;
use crate::sql::Sql;
use crate::store::Inner;

impl Inner {
    pub(super) async fn retry_waiting(
        &self,
        filter: &Filter,
        how: RetryOptions,
        after: Option<&RowRef>,
        limit: usize,
        command: &mut Command,
    ) -> Result<RetriedBatch> {
        let sink = after.and_then(|row_ref| row_ref.sink.as_deref()).unwrap_or_default();
        let mut values = to_retry(filter, how);
        values.extend([
            Value::Integer(after.map_or(-1, |row_ref| i64::from(row_ref.lane))),
            Value::Integer(after.map_or(0, |row_ref| row_ref.seq)),
            Value::Text(sink.to_owned()),
            Value::Blob(after.map_or_else(Vec::new, |row_ref| row_ref.id.with_text(<[u8]>::to_vec))),
            Value::Integer(number(limit)),
        ]);
        let batch = Batch {
            what: "messages could not be retried",
            action: how.action(),
            asked: how.asked(filter).to_string(),
        };
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let mut statement = tx.prepare_cached(sql.retry_waiting.first())?;
            let row_refs = statement.query_map(params_from_iter(values), row_ref)?;
            let row_refs: Vec<RowRef> = row_refs.collect::<rusqlite::Result<_>>()?;
            let due = u64::try_from(row_refs.len()).unwrap_or(u64::MAX);
            let next = if row_refs.len() == limit {
                row_refs.into_iter().max_by(in_order)
            } else {
                None
            };
            Ok(RetriedBatch { due, next })
        };
        self.act_for(command, batch, act, |retried| retried.due).await
    }

    pub(super) async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        let (sql, values) = (self.sql.clone(), to_retry(filter, how));
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.retry_waiting_count.first())?;
            statement.query_row(params_from_iter(values), |row| count(row, 0))
        };
        let what = "messages to retry could not be counted";
        self.operate.call(what, work).await
    }
}

/// The values of `to_retry.sql`.
fn to_retry(filter: &Filter, how: RetryOptions) -> Vec<Value> {
    let mut values = values(filter);
    values.extend([how.reset, how.scheduled].map(|flag| Value::Integer(i64::from(flag))));
    values
}

/// The order of the statement.
fn in_order(one: &RowRef, other: &RowRef) -> Ordering {
    let number = |row_ref: &RowRef| (row_ref.lane, row_ref.seq);
    let ids = || one.id.with_text(|one| other.id.with_text(|other| one.cmp(other)));
    number(one)
        .cmp(&number(other))
        .then_with(|| one.sink.cmp(&other.sink))
        .then_with(ids)
}

fn row_ref(row: &Row<'_>) -> rusqlite::Result<RowRef> {
    let sink: String = row.get(2)?;
    Ok(RowRef {
        table: Table::Waiting,
        lane: row.get::<_, Lane>(0)?,
        seq: row.get(1)?,
        id: row_id::read(row.get_ref(3)?),
        sink: Some(sink).filter(|sink| !sink.is_empty()).map(Into::into),
        locator: 0,
    })
}
