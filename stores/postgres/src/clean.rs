//! Clean: deletes rows that are past their retention, in small batches, so that no other transaction waits long for a
//! lock.

use std::time::Duration;

use sendoff::Result;
use sendoff::store::{CleanCount, Cleaned, Command, Retention};
use tokio_postgres::types::Type;

use crate::decode::{column, count, micros, number};
use crate::operate::only;
use crate::pipeline::{Param, Statement};
use crate::pool::PooledConnection;
use crate::store::Inner;

const WHAT: &str = "expired rows could not be deleted";

impl Inner {
    /// One relay at a time cleans, and the others go on with their work. The lock ends with the transaction, so a pooler
    /// does no harm.
    pub(crate) async fn clean(&self, limit: usize) -> Result<u64> {
        let (retention, dead) = (
            self.config.settings.retention.map(micros),
            self.config.settings.dead_retention.map(micros),
        );
        let params: [Param<'_>; 2] = [(&retention, Type::INT8), (&dead, Type::INT8)];
        let connection = self.operate_pool.get().await?;
        let needed = connection.run(WHAT, &self.texts.clean_needed, &params).await?;
        if !column::<bool>(WHAT, only(WHAT, &needed)?, 0)? {
            connection.give_back();
            return Ok(0);
        }
        let lock = format!("sendoff clean {}", self.config.names);
        let take = Statement {
            // What a crash brings back is cleaned up again, so nobody has to wait for the disk.
            sql: "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)), set_config('synchronous_commit', 'off', true)",
            params: vec![(&lock, Type::TEXT)],
        };
        let locked = connection.begin(WHAT, &[take]).await?.pop().unwrap_or_default();
        let mut gone = 0;
        if column::<bool>(WHAT, only(WHAT, &locked)?, 0)? {
            if let Some(retention) = self.config.settings.retention {
                gone += self.clean_delivered(&connection, retention, number(limit)).await?;
                let left = number(limit).saturating_sub(gone).max(0);
                let params: [Param<'_>; 2] = [(&micros(retention), Type::INT8), (&left, Type::INT8)];
                gone += rows(&connection, &self.texts.clean_jobs, &params).await?;
            }
            if let Some(age) = dead {
                let left = number(limit).saturating_sub(gone).max(0);
                let params: [Param<'_>; 2] = [(&age, Type::INT8), (&left, Type::INT8)];
                gone += rows(&connection, &self.texts.clean_dead, &params).await?;
            }
            let left = number(limit).saturating_sub(gone).max(0);
            gone += rows(&connection, &self.texts.clean_dedup, &[(&left, Type::INT8)]).await?;
            let left = number(limit).saturating_sub(gone).max(0);
            let by_setting: Option<i64> = None;
            let params: [Param<'_>; 2] = [(&by_setting, Type::INT8), (&left, Type::INT8)];
            gone += rows(&connection, &self.texts.clean_inbox, &params).await?;
        }
        connection.commit(WHAT, &[]).await?;
        connection.give_back();
        Ok(count(gone))
    }

    pub(crate) async fn clean_count(&self, retention: &Retention) -> Result<CleanCount> {
        let [delivered, dead, inbox] =
            [retention.delivered, retention.dead, retention.inbox].map(|window| window.map(micros));
        let params: [Param<'_>; 4] = [
            (&delivered, Type::INT8),
            (&dead, Type::INT8),
            (&retention.dedup, Type::BOOL),
            (&inbox, Type::INT8),
        ];
        let what = "expired rows could not be counted";
        let found = self.operate_pool.run(what, &self.texts.clean_count, &params).await?;
        let number = |at| column::<i64>(what, only(what, &found)?, at).map(count);
        Ok(CleanCount {
            old: number(0)?,
            all: number(1)?,
        })
    }

    pub(crate) async fn clean_up(&self, retention: &Retention, limit: usize, command: &mut Command) -> Result<Cleaned> {
        let (filter, limit) = (retention.asked().to_string(), number(limit));
        let params: [Param<'_>; 2] = [(&filter, Type::TEXT), (&limit, Type::INT8)];
        let done = self.act(WHAT, &self.texts.clean_up, &params, command).await?;
        Ok(Cleaned {
            deleted: done.affected,
            more: column(WHAT, &done.row, 2)?,
        })
    }

    /// By whole days where there are partitions. How many rows went.
    async fn clean_delivered(&self, connection: &PooledConnection, window: Duration, limit: i64) -> Result<i64> {
        let params: [Param<'_>; 2] = [(&micros(window), Type::INT8), (&limit, Type::INT8)];
        let found = connection.run_next(WHAT, &self.texts.clean_delivered, &params).await?;
        column(WHAT, only(WHAT, &found)?, 0)
    }
}

/// Deletes, and counts what it deleted.
async fn rows(connection: &PooledConnection, sql: &str, params: &[Param<'_>]) -> Result<i64> {
    Ok(number(connection.run_next(WHAT, sql, params).await?.len()))
}
