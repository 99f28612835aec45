//! Room: clean. What has served its time goes, some at a time, so that nobody waits long for a lock.

use std::time::Duration;

use sendoff::Result;
use sendoff::store::{Action, CleanCount, Cleaned, Command, Windows};
use tokio_postgres::types::Type;

use crate::decode::{column, count, micros, number};
use crate::operate::{Act, only};
use crate::pipeline::{Param, Statement};
use crate::pool::Lent;
use crate::store::Inner;

const WHAT: &str = "what is old could not be cleaned up";

impl Inner {
    /// One relay at a time cleans, and the others go on with their work. The lock ends with the transaction, so a pooler
    /// does no harm.
    pub(crate) async fn clean(&self, limit: usize) -> Result<u64> {
        let (retention, dead) = (
            self.config.retention.map(micros),
            self.config.dead_retention.map(micros),
        );
        let params: [Param<'_>; 2] = [(&retention, Type::INT8), (&dead, Type::INT8)];
        let lent = self.operate_pool.lend().await?;
        let needed = lent.run(WHAT, &self.texts.clean_needed, &params).await?;
        if !column::<bool>(WHAT, only(WHAT, &needed)?, 0)? {
            lent.give_back();
            return Ok(0);
        }
        let lock = format!("sendoff clean {}", self.config.names);
        let take = Statement {
            // What a crash brings back is cleaned up again, so nobody has to wait for the disk.
            sql: "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)), set_config('synchronous_commit', 'off', true)",
            params: vec![(&lock, Type::TEXT)],
        };
        let locked = lent.begin(WHAT, &[take]).await?.pop().unwrap_or_default();
        let mut gone = 0;
        if column::<bool>(WHAT, only(WHAT, &locked)?, 0)? {
            if let Some(retention) = self.config.retention {
                gone += self.clean_delivered(&lent, retention, number(limit), false).await?.0;
                let left = number(limit).saturating_sub(gone).max(0);
                let params: [Param<'_>; 2] = [(&micros(retention), Type::INT8), (&left, Type::INT8)];
                gone += rows(&lent, &self.texts.clean_items, &params).await?;
            }
            if let Some(age) = dead {
                let left = number(limit).saturating_sub(gone).max(0);
                let params: [Param<'_>; 2] = [(&age, Type::INT8), (&left, Type::INT8)];
                gone += rows(&lent, &self.texts.clean_dead, &params).await?;
            }
            let left = number(limit).saturating_sub(gone).max(0);
            gone += rows(&lent, &self.texts.clean_dedup, &[(&left, Type::INT8)]).await?;
            let left = number(limit).saturating_sub(gone).max(0);
            let by_setting: Option<i64> = None;
            let params: [Param<'_>; 2] = [(&by_setting, Type::INT8), (&left, Type::INT8)];
            gone += rows(&lent, &self.texts.clean_inbox, &params).await?;
        }
        lent.commit(WHAT, &[]).await?;
        lent.give_back();
        Ok(count(gone))
    }

    pub(crate) async fn clean_count(&self, windows: &Windows) -> Result<CleanCount> {
        let [delivered, dead, inbox] =
            [windows.delivered, windows.dead, windows.inbox].map(|window| window.map(micros));
        let params: [Param<'_>; 4] = [
            (&delivered, Type::INT8),
            (&dead, Type::INT8),
            (&windows.dedup, Type::BOOL),
            (&inbox, Type::INT8),
        ];
        let what = "what is old could not be counted";
        let found = self.operate_pool.run(what, &self.texts.clean_count, &params).await?;
        let number = |at| column::<i64>(what, only(what, &found)?, at).map(count);
        Ok(CleanCount {
            old: number(0)?,
            all: number(1)?,
        })
    }

    pub(crate) async fn clean_up(&self, windows: &Windows, limit: usize, command: &mut Command) -> Result<Cleaned> {
        let who = command.who().to_owned();
        let act = Act {
            what: WHAT,
            action: Action::CleanUp,
            filter: windows.asked().to_string(),
            who: &who,
        };
        let lent = self.operate_pool.lend().await?;
        lent.begin(WHAT, &[]).await?;
        // Cut short by a day that was dropped, or by the limit: then the rest is for the next batch.
        let (mut gone, mut more) = (0, false);
        if let Some(window) = windows.delivered {
            (gone, more) = self.clean_delivered(&lent, window, number(limit), true).await?;
        }
        if !more {
            let left = number(limit) - gone;
            gone += self.clean_rows(&lent, windows, left).await?;
            more = gone == number(limit);
        }
        let deleted = count(gone);
        self.end_batch(lent, &act, command, deleted).await?;
        Ok(Cleaned { deleted, more })
    }

    /// Deletes up to so many rows of what has no days.
    async fn clean_rows(&self, lent: &Lent, windows: &Windows, limit: i64) -> Result<i64> {
        let mut left = limit;
        if let Some(window) = windows.delivered {
            let params: [Param<'_>; 2] = [(&micros(window), Type::INT8), (&left, Type::INT8)];
            left -= rows(lent, &self.texts.clean_items, &params).await?;
        }
        if let Some(window) = windows.dead {
            let params: [Param<'_>; 2] = [(&micros(window), Type::INT8), (&left, Type::INT8)];
            left -= rows(lent, &self.texts.clean_dead, &params).await?;
        }
        if windows.dedup {
            let params: [Param<'_>; 1] = [(&left, Type::INT8)];
            left -= rows(lent, &self.texts.clean_dedup, &params).await?;
        }
        if let Some(window) = windows.inbox {
            let params: [Param<'_>; 2] = [(&micros(window), Type::INT8), (&left, Type::INT8)];
            left -= rows(lent, &self.texts.clean_inbox, &params).await?;
        }
        Ok(limit - left)
    }

    /// How many rows went, and whether there may be more.
    async fn clean_delivered(&self, lent: &Lent, window: Duration, limit: i64, exact: bool) -> Result<(i64, bool)> {
        let params: [Param<'_>; 3] = [
            (&micros(window), Type::INT8),
            (&limit, Type::INT8),
            (&exact, Type::BOOL),
        ];
        let found = lent.go_on(WHAT, &self.texts.clean_delivered, &params).await?;
        let row = only(WHAT, &found)?;
        Ok((column(WHAT, row, 0)?, column(WHAT, row, 1)?))
    }
}

/// Deletes, and counts what it deleted.
async fn rows(lent: &Lent, sql: &str, params: &[Param<'_>]) -> Result<i64> {
    Ok(number(lent.go_on(WHAT, sql, params).await?.len()))
}
