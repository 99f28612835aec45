//! Operate: what operators see and do, and counts for the relay.

mod change;
mod filter;
mod list;
mod list_texts;
mod overview;
mod pause;
mod reap;
mod retry_waiting;
mod view;

use std::time::{Duration, SystemTime};

use sendoff::store::{Backlog, BlockedKey, Lane, OwnerId, Stored, Summary};
use sendoff::{Result, Uuid};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::decode::{column, count, shown, smallints};
use crate::error::odd_answer;
use crate::pipeline::Param;
use crate::settle::blocked_key;
use crate::store::Inner;
pub(crate) use change::as_json;
pub(crate) use list_texts::list_texts;

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
        let what = "blocked messages could not be released";
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

    pub(crate) async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let rows = self
            .operate_pool
            .run(
                "the message could not be looked up",
                &self.texts.find,
                &[(&id, Type::UUID)],
            )
            .await?;
        shown(&rows)
    }

    pub(crate) async fn now(&self) -> Result<SystemTime> {
        let what = "the database's time could not be read";
        let rows = self.operate_pool.run(what, &self.texts.now, &[]).await?;
        column(what, only(what, &rows)?, 0)
    }

    pub(crate) async fn summary(&self) -> Result<Summary> {
        let what = "the summary could not be read";
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
