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

use mysql_async::{Row, params};
use sendoff::store::{Backlog, Stored, Summary};
use sendoff::{Result, Uuid};

pub(crate) use self::change::Act;
pub(crate) use self::list_texts::list_texts;
use crate::decode::{count, number, number_or_null, shown, to_time};
use crate::error::odd_answer;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn backlog(&self) -> Result<Backlog> {
        let what = "the backlog could not be counted";
        let rows = self.operate_pool.rows(what, self.texts.backlog.first(), ()).await?;
        let row = only(what, &rows)?;
        let number = |at| number(what, row, at).map(count);
        Ok(Backlog {
            ready: number(0)?,
            due: number(1)?,
            waiting: number(2)?,
            dead: number(3)?,
        })
    }

    pub(crate) async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let what = "the message could not be looked up";
        let values = params! { "id" => id.to_string() };
        let rows = self.operate_pool.rows(what, self.texts.find.first(), values).await?;
        shown(&rows)
    }

    pub(crate) async fn now(&self) -> Result<SystemTime> {
        let what = "the database's time could not be read";
        let rows = self.operate_pool.rows(what, self.texts.now.first(), ()).await?;
        number(what, only(what, &rows)?, 0).map(to_time)
    }

    pub(crate) async fn summary(&self) -> Result<Summary> {
        let what = "the summary could not be read";
        let rows = self.operate_pool.rows(what, self.texts.summary.first(), ()).await?;
        let row = only(what, &rows)?;
        let number = |at| number(what, row, at).map(count);
        let age = |at| -> Result<Option<Duration>> {
            let micros = number_or_null(what, row, at)?;
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
