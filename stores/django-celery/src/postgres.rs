//! The tables in PostgreSQL.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sendoff::Result;
use sendoff_store_postgres::PostgresConfig;
use sendoff_store_postgres::connection::{Connector, Param, Pool, Statement};
use tokio_postgres::types::{FromSql, Type};

use crate::error::odd_row;
use crate::table::Table;
use crate::{Claim, DjangoConfig, Purge, Row, Settlement, Stamp, Stats};

/// A claim or a settlement that a crash of the database undoes only sends tasks twice, so the disk is not waited for.
const ASYNC_COMMIT: &str = "SET LOCAL synchronous_commit = off";

pub(crate) struct PostgresTable {
    /// Apart, so that claiming does not wait for settling.
    claiming: Pool,
    settling: Pool,
    /// What operators do: that must survive a crash.
    operating: Pool,
}

impl PostgresTable {
    pub(crate) fn new(url: &str, config: &DjangoConfig) -> Result<Self> {
        let mut settings = PostgresConfig::new(url);
        settings.connect_timeout = config.connect_timeout;
        settings.statement_timeout = config.statement_timeout;
        "sendoff celery-relay".clone_into(&mut settings.application_name);
        let connector = Connector::new(&settings)?;
        let limit = config.statement_timeout;
        let pool = |size, with| Pool::new(connector.clone(), size, limit, Some(limit), with);
        Ok(Self {
            claiming: pool(1, ASYNC_COMMIT),
            settling: pool(2, ASYNC_COMMIT),
            operating: pool(1, ""),
        })
    }
}

#[async_trait]
impl Table for PostgresTable {
    async fn check(&self) -> Result<()> {
        let what = "the tables of django-celery-outbox cannot be used";
        let sql = include_str!("../sql/postgres/check.sql");
        self.operating.run(what, sql, &[]).await?;
        Ok(())
    }

    async fn claim(&self, limit: u32, stale: Duration) -> Result<Claim> {
        let (limit, stale) = (i64::from(limit), stale.as_secs_f64());
        let params: [Param<'_>; 2] = [(&limit, Type::INT8), (&stale, Type::FLOAT8)];
        let sql = include_str!("../sql/postgres/claim.sql");
        let found = self.claiming.run("claiming tasks failed", sql, &params).await?;
        let mut stamp = SystemTime::UNIX_EPOCH;
        let mut rows = Vec::with_capacity(found.len());
        for row in &found {
            stamp = read(row, 8)?;
            rows.push(decode(row)?);
        }
        rows.sort_unstable_by_key(|row: &Row| row.id);
        Ok(Claim {
            rows,
            stamp: Stamp::At(stamp),
        })
    }

    async fn settle(&self, stamp: &Stamp, settlement: &Settlement) -> Result<()> {
        let Stamp::At(stamp) = stamp else {
            return Err(odd_row("the claim is from another database"));
        };
        let Settlement {
            sent,
            failed,
            dead,
            released,
            ..
        } = settlement;
        let (failed, delays): (Vec<i64>, Vec<f64>) = failed
            .iter()
            .map(|failed| (failed.id, failed.delay.as_secs_f64()))
            .unzip();
        let (dead, reasons): (Vec<i64>, Vec<String>) =
            dead.iter().map(|dead| (dead.id, storable(&dead.reason))).unzip();
        let (put_off, waits): (Vec<i64>, Vec<f64>) = settlement
            .put_off()
            .map(|(id, delay)| (id, delay.as_secs_f64()))
            .unzip();
        let ids = Type::INT8_ARRAY;
        let statements = [
            (
                sent.len(),
                include_str!("../sql/postgres/sent.sql"),
                vec![(sent as _, ids.clone())],
            ),
            (
                failed.len(),
                include_str!("../sql/postgres/fail.sql"),
                vec![
                    (&failed as _, ids.clone()),
                    (&delays as _, Type::FLOAT8_ARRAY),
                    (stamp as _, Type::TIMESTAMPTZ),
                ],
            ),
            (
                put_off.len(),
                include_str!("../sql/postgres/defer.sql"),
                vec![
                    (&put_off as _, ids.clone()),
                    (&waits as _, Type::FLOAT8_ARRAY),
                    (stamp as _, Type::TIMESTAMPTZ),
                ],
            ),
            (
                dead.len(),
                include_str!("../sql/postgres/die.sql"),
                vec![
                    (&dead as _, ids.clone()),
                    (&reasons as _, Type::TEXT_ARRAY),
                    (stamp as _, Type::TIMESTAMPTZ),
                ],
            ),
            (
                released.len(),
                include_str!("../sql/postgres/release.sql"),
                vec![(released as _, ids), (stamp as _, Type::TIMESTAMPTZ)],
            ),
        ];
        let wanted = statements.into_iter().filter(|(rows, ..)| *rows > 0);
        let statements: Vec<Statement<'_>> = wanted.map(|(_, sql, params)| Statement { sql, params }).collect();
        let connection = self.settling.get().await?;
        connection.run_all("settling tasks failed", &statements).await?;
        connection.give_back();
        Ok(())
    }

    async fn retry_dead(&self, ids: Option<&[i64]>, limit: u32) -> Result<u64> {
        let limit = i64::from(limit);
        let params: [Param<'_>; 2] = [(&ids, Type::INT8_ARRAY), (&limit, Type::INT8)];
        let sql = include_str!("../sql/postgres/retry_dead.sql");
        let retried = self.operating.run("retrying dead letters failed", sql, &params).await?;
        Ok(retried.len() as u64)
    }

    async fn purge(&self, which: &Purge) -> Result<Vec<String>> {
        let purged = self.of_dead(include_str!("../sql/postgres/purge.sql"), which).await?;
        purged.iter().map(|row| read(row, 0)).collect()
    }

    async fn purgeable(&self, which: &Purge) -> Result<Vec<(String, u64)>> {
        let found = self
            .of_dead(include_str!("../sql/postgres/purgeable.sql"), which)
            .await?;
        found.iter().map(counted).collect()
    }

    async fn failing(&self, most: u32) -> Result<Vec<(String, u64)>> {
        let (most, sql) = (i64::from(most), include_str!("../sql/postgres/failing.sql"));
        let params: [Param<'_>; 1] = [(&most, Type::INT8)];
        let found = self.operating.run("counting tasks failed", sql, &params).await?;
        found.iter().map(counted).collect()
    }

    async fn stats(&self, stale: Duration) -> Result<Stats> {
        let stale = stale.as_secs_f64();
        let sql = include_str!("../sql/postgres/stats.sql");
        let params: [Param<'_>; 1] = [(&stale, Type::FLOAT8)];
        let found = self.operating.run("counting tasks failed", sql, &params).await?;
        let row = found.first().ok_or_else(|| odd_row("the count returned no row"))?;
        let count = |at| Ok::<_, sendoff::Error>(read::<i64>(row, at)?.unsigned_abs());
        let oldest: Option<f64> = read(row, 3)?;
        Ok(Stats {
            eligible: count(0)?,
            waiting: count(1)?,
            dead: count(2)?,
            oldest: oldest.map(|seconds| Duration::from_secs_f64(seconds.max(0.0))),
            first: read(row, 4)?,
            now: read(row, 5)?,
        })
    }
}

impl PostgresTable {
    /// Runs a statement about the dead letters to be purged.
    async fn of_dead(&self, sql: &str, which: &Purge) -> Result<Vec<tokio_postgres::Row>> {
        let seconds = |age: Option<Duration>| age.map(|age| age.as_secs_f64());
        let (dead, created) = (seconds(which.older_than_dead), seconds(which.older_than_created));
        let like = which.like();
        let params: [Param<'_>; 3] = [(&dead, Type::FLOAT8), (&created, Type::FLOAT8), (&like, Type::TEXT)];
        self.operating.run("purging dead letters failed", sql, &params).await
    }
}

/// A task's name and a number.
fn counted(row: &tokio_postgres::Row) -> Result<(String, u64)> {
    Ok((read(row, 0)?, read::<i64>(row, 1)?.unsigned_abs()))
}

fn decode(row: &tokio_postgres::Row) -> Result<Row> {
    Ok(Row {
        id: read(row, 0)?,
        task_id: read(row, 1)?,
        task_name: read(row, 2)?,
        args: read(row, 3)?,
        kwargs: read(row, 4)?,
        options: read(row, 5)?,
        retries: u16::try_from(read::<i16>(row, 6)?).unwrap_or(0),
        created_at: read(row, 7)?,
        sentry_trace_id: read(row, 9)?,
        sentry_baggage: read(row, 10)?,
        structlog_context: read(row, 11)?,
    })
}

fn read<'a, T: FromSql<'a>>(row: &'a tokio_postgres::Row, at: usize) -> Result<T> {
    row.try_get(at).map_err(|error| odd_row(error.to_string()))
}

/// A reason is text, and text has no NUL in PostgreSQL.
fn storable(reason: &str) -> String {
    reason.replace('\0', "\u{fffd}")
}
