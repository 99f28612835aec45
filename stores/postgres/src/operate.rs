//! Room: operate. What an operator sees and does, and what the relay asks about the whole.

mod change;
mod filter;
mod hasten;
mod pause;
mod reap;
mod view;

use std::time::{Duration, SystemTime};

use sendoff::store::{Backlog, BlockedKey, Filter, Lane, Listing, OwnerId, Status, Stored, Summary};
use sendoff::{Result, Uuid};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::decode::{column, count, number, smallints};
use crate::error::odd_answer;
use crate::pipeline::Param;
use crate::settle::blocked_key;
use crate::store::Inner;
pub(crate) use change::Act;
use filter::Columns;

impl Inner {
    pub(crate) async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>> {
        let what = "blocked keys could not be read";
        let lanes = smallints(lanes);
        let rows = self
            .operate_pool
            .run(what, &self.texts.blocked_keys, &[(&lanes, Type::INT2_ARRAY)])
            .await?;
        rows.iter().map(|row| blocked_key(what, row)).collect()
    }

    pub(crate) async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64> {
        let lanes = smallints(lanes);
        let params: [Param<'_>; 2] = [(&owner.0, Type::UUID), (&lanes, Type::INT2_ARRAY)];
        let what = "held messages could not be let go";
        let released = self
            .operate_pool
            .run(what, &self.texts.release_orphans, &params)
            .await?;
        Ok(released.len() as u64)
    }

    pub(crate) async fn backlog(&self) -> Result<Backlog> {
        let what = "the backlog could not be counted";
        let rows = self.operate_pool.run(what, &self.texts.backlog, &[]).await?;
        let row = only(what, &rows)?;
        let number = |at| column::<i64>(what, row, at).map(count);
        Ok(Backlog {
            ready: number(0)?,
            due: number(1)?,
            waiting: number(2)?,
            dead: number(3)?,
        })
    }

    pub(crate) async fn paused(&self) -> Result<Vec<(String, String)>> {
        let what = "pauses could not be read";
        let rows = self.operate_pool.run(what, &self.texts.paused, &[]).await?;
        rows.iter()
            .map(|row| Ok((column(what, row, 0)?, column(what, row, 1)?)))
            .collect()
    }

    pub(crate) async fn list(&self, filter: &Filter, limit: usize, offset: usize) -> Result<Listing> {
        let filter = Columns::new(filter);
        // One more than asked for tells whether there are more.
        let (one_more, offset) = (number(limit).saturating_add(1), number(offset));
        let mut params = filter.params();
        params.push((&one_more, Type::INT8));
        params.push((&offset, Type::INT8));
        let rows = self
            .operate_pool
            .run("messages could not be listed", &self.texts.list, &params)
            .await?;
        let messages = rows.iter().take(limit).map(shown).collect::<Result<_>>()?;
        Ok(Listing {
            messages,
            more: rows.len() > limit,
        })
    }

    pub(crate) async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let rows = self
            .operate_pool
            .run(
                "the message could not be looked up",
                &self.texts.find,
                &[(&id, Type::UUID)],
            )
            .await?;
        rows.iter().map(shown).collect()
    }

    pub(crate) async fn now(&self) -> Result<SystemTime> {
        let what = "the database's time could not be read";
        let rows = self.operate_pool.run(what, &self.texts.now, &[]).await?;
        column(what, only(what, &rows)?, 0)
    }

    pub(crate) async fn summary(&self) -> Result<Summary> {
        let what = "the summary could not be made";
        let rows = self.operate_pool.run(what, &self.texts.summary, &[]).await?;
        let row = only(what, &rows)?;
        let number = |at| column::<i64>(what, row, at).map(count);
        let age = |at| -> Result<Option<Duration>> {
            let micros = column::<Option<i64>>(what, row, at)?;
            Ok(micros.map(|micros| Duration::from_micros(count(micros))))
        };
        Ok(Summary {
            ready: number(0)?,
            waiting: number(1)?,
            failed: number(2)?,
            dead: number(3)?,
            delivered: number(4)?,
            oldest_ready: age(5)?,
            oldest_pending: age(5)?.max(age(6)?),
        })
    }
}

pub(crate) fn only<'a>(what: &str, rows: &'a [Row]) -> Result<&'a Row> {
    rows.first().ok_or_else(|| odd_answer(what, "the answer is empty"))
}

/// A row of `list.sql` or `find.sql`: the beginning of its payload comes with it, and how long that is.
fn shown(row: &Row) -> Result<Stored> {
    let payload_bytes = column::<i64>("a message could not be shown", row, 24)?.unsigned_abs();
    Ok(Stored {
        payload_bytes,
        ..stored(row)?
    })
}

/// A row of `list.sql`, `find.sql` or `list_items.sql`, whose first columns are the same.
pub(crate) fn stored(row: &Row) -> Result<Stored> {
    let what = "a message could not be shown";
    let status = match column::<&str>(what, row, 0)? {
        "pending" => Status::Pending,
        "retry" => Status::Retry,
        "delivered" => Status::Delivered,
        "dead" => Status::Dead,
        other => return Err(odd_answer(what, format!("it has the unknown status {other:?}"))),
    };
    let payload: Vec<u8> = column(what, row, 13)?;
    Ok(Stored {
        status,
        id: column(what, row, 1)?,
        topic: column(what, row, 2)?,
        leg: column(what, row, 3)?,
        key: column(what, row, 4)?,
        lane: column::<i16>(what, row, 5)?.into(),
        seq: column(what, row, 6)?,
        aggregate_type: column(what, row, 7)?,
        aggregate_id: column(what, row, 8)?,
        schema_version: column::<Option<i32>>(what, row, 9)?.map(Into::into),
        idempotency_key: column(what, row, 10)?,
        content_type: column(what, row, 11)?,
        headers: column(what, row, 12)?,
        payload_bytes: payload.len() as u64,
        payload,
        priority: column::<i16>(what, row, 14)?.into(),
        attempts: column::<i32>(what, row, 15)?.into(),
        max_attempts: column::<Option<i16>>(what, row, 16)?.map(Into::into),
        last_error: column(what, row, 17)?,
        detail: column(what, row, 18)?,
        history: column(what, row, 19)?,
        created_at: column::<SystemTime>(what, row, 20)?,
        due_at: column(what, row, 21)?,
        expires_at: column(what, row, 22)?,
        ended_at: column(what, row, 23)?,
    })
}
