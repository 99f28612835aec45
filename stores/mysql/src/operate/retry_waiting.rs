//! Makes waiting messages due.

use mysql_async::{Row, Value, params};
use sendoff::Result;
use sendoff::store::{Command, Filter, RetriedBatch, RetryOptions, RowId, RowRef, Table};

use super::change::{Act, row_refs};
use super::filter::values;
use super::only;
use crate::conflict::transact;
use crate::decode::{count, id_hex, lane, limit, number, text, unhex, unhex_bytes};
use crate::pool::PooledConnection;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn retry_waiting(
        &self,
        filter: &Filter,
        how: RetryOptions,
        after: Option<&RowRef>,
        most: usize,
        command: &mut Command,
    ) -> Result<RetriedBatch> {
        let who = command.who().to_owned();
        let act = Act {
            what: "messages could not be retried",
            action: how.action(),
            filter: how.asked(filter).to_string(),
            who: &who,
        };
        let sink = after.and_then(|row_ref| row_ref.sink.as_deref()).unwrap_or_default();
        let mut values = self.to_retry(filter, how).await;
        values.push((
            "behind_lane",
            after.map_or(-1, |row_ref| i64::from(row_ref.lane)).into(),
        ));
        values.push(("behind_seq", after.map_or(0, |row_ref| row_ref.seq).into()));
        values.push(("behind_delivery", sink.into()));
        let id = after.map_or_else(String::new, |row_ref| id_hex(&row_ref.id));
        values.push(("behind_id", id.into()));
        values.push(("limit", limit(most).into()));
        let row = command.row();
        let (retried, row) = transact!(self.operate_pool, act.what, connection => {
            self.make_due(&mut connection, &act, row, &values, how.reset, most).await
        })?;
        command.is_noted(row);
        Ok(retried)
    }

    async fn make_due(
        &self,
        connection: &mut PooledConnection,
        act: &Act<'_>,
        row: Option<i64>,
        values: &[(&'static str, Value)],
        reset: bool,
        most: usize,
    ) -> Result<(RetriedBatch, i64)> {
        let sql = &self.texts.retry_waiting;
        let waiting = connection.rows(act.what, sql.at(0), values.to_vec()).await?;
        if let Some(rows) = row_refs(act.what, &waiting)? {
            let values = params! { "rows" => rows, "reset" => reset };
            connection.change(act.what, sql.at(1), values).await?;
        }
        let due = waiting.len() as u64;
        let next = waiting.last().filter(|_| waiting.len() == most);
        let next = next.map(|row| waiting_at(act.what, row)).transpose()?;
        let row = self.write_batch(connection, act, row, due).await?;
        Ok((RetriedBatch { due, next }, row))
    }

    pub(crate) async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        let what = "messages to retry could not be counted";
        let values = self.to_retry(filter, how).await;
        let rows = self
            .operate_pool
            .rows(what, self.texts.retry_waiting_count.first(), values)
            .await?;
        number(what, only(what, &rows)?, 0).map(count)
    }

    /// The values of `to_retry.sql`. Scheduled messages that no relay has come across yet are filed first, to be found.
    async fn to_retry(&self, filter: &Filter, how: RetryOptions) -> Vec<(&'static str, Value)> {
        if how.scheduled {
            self.file_all().await;
        }
        let mut values = values(filter);
        values.push(("reset", how.reset.into()));
        values.push(("scheduled", how.scheduled.into()));
        values
    }
}

/// Where a row of `retry_waiting.sql` is.
fn waiting_at(what: &str, row: &Row) -> Result<RowRef> {
    let sink = unhex(&text(what, row, 2)?).filter(|sink| !sink.is_empty());
    Ok(RowRef {
        table: Table::Waiting,
        lane: lane(what, row, 0)?,
        seq: number(what, row, 1)?,
        id: RowId::from_text(&unhex_bytes(&text(what, row, 3)?).unwrap_or_default()),
        sink: sink.map(Into::into),
        locator: 0,
    })
}
