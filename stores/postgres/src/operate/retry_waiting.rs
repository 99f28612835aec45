//! Makes waiting messages due.

use sendoff::store::{Command, Filter, RetriedBatch, RetryOptions, RowRef, Table};
use sendoff::{Result, Uuid};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::filter::Columns;
use super::only;
use crate::decode::{column, count, number, smallint};
use crate::pipeline::Param;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn retry_waiting(
        &self,
        filter: &Filter,
        how: RetryOptions,
        after: Option<&RowRef>,
        limit: usize,
        command: &mut Command,
    ) -> Result<RetriedBatch> {
        let what = "messages could not be retried";
        let (filter, limit) = (how.asked(filter).to_string(), number(limit));
        let (lane, seq) = after.map_or((-1, 0), |row_ref| (smallint(row_ref.lane), row_ref.seq));
        let sink = after.and_then(|row_ref| row_ref.sink.as_deref()).unwrap_or_default();
        let id = after.map(|row_ref| row_ref.id.uuid()).unwrap_or_default();
        let params: [Param<'_>; 7] = [
            (&filter, Type::TEXT),
            (&limit, Type::INT8),
            (&how.reset, Type::BOOL),
            (&lane, Type::INT2),
            (&seq, Type::INT8),
            (&sink, Type::TEXT),
            (&id, Type::UUID),
        ];
        let done = self.act(what, &self.texts.retry_waiting, &params, command).await?;
        let is_full = column::<i64>(what, &done.row, 2)? == limit && limit > 0;
        let retried = RetriedBatch {
            due: done.affected,
            next: is_full.then(|| waiting_at(what, &done.row)).transpose()?,
        };
        Ok(retried)
    }

    pub(crate) async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        let what = "messages to retry could not be counted";
        // Only dead letters have these; outbox_retry_waiting changes nothing then, either.
        if filter.reason.is_some() || filter.died_from.is_some() || filter.died_until.is_some() {
            return Ok(0);
        }
        let filter = Columns::new(filter);
        let params = to_retry(&filter, &how);
        let rows = self
            .operate_pool
            .run(what, &self.texts.retry_waiting_count, &params)
            .await?;
        column::<i64>(what, only(what, &rows)?, 0).map(count)
    }
}

/// The values of `to_retry.sql`.
fn to_retry<'a>(filter: &'a Columns<'_>, how: &'a RetryOptions) -> Vec<Param<'a>> {
    let mut params = filter.params();
    params.extend::<[Param<'_>; 2]>([(&how.reset, Type::BOOL), (&how.scheduled, Type::BOOL)]);
    params
}

/// The place at the end of a row of `retry_waiting.sql`.
fn waiting_at(what: &str, row: &Row) -> Result<RowRef> {
    let sink: &str = column(what, row, 5)?;
    Ok(RowRef {
        table: Table::Waiting,
        lane: column::<i16>(what, row, 3)?.unsigned_abs(),
        seq: column(what, row, 4)?,
        id: column::<Uuid>(what, row, 6)?.into(),
        sink: Some(sink).filter(|sink| !sink.is_empty()).map(Into::into),
        locator: 0,
    })
}
