//! The tables in MySQL or MariaDB.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use jiff::civil::DateTime;
use mysql_async::{FromRowError, Row as MysqlRow, Value, from_row_opt};
use sendoff::Result;
use sendoff_store_mysql::MysqlConfig;
use sendoff_store_mysql::connection::{Attempts, Connector, Pool, PooledConnection};

use crate::error::odd_row;
use crate::instant::in_utc;
use crate::table::Table;
use crate::{Claim, DjangoConfig, Purge, Row, Settlement, Stamp, Stats};

pub(crate) struct MysqlTable {
    /// Apart, so that claiming does not wait for settling.
    claiming: Pool,
    settling: Pool,
    operating: Pool,
    time_zone: Option<String>,
}

impl MysqlTable {
    pub(crate) fn new(url: &str, config: &DjangoConfig) -> Result<Self> {
        let mut settings = MysqlConfig::new(url);
        settings.connect_timeout = config.connect_timeout;
        settings.statement_timeout = config.statement_timeout;
        let connector = Connector::new(&settings)?;
        let pool = |size| Pool::new(connector.clone(), size, config.statement_timeout);
        Ok(Self {
            claiming: pool(1),
            settling: pool(2),
            operating: pool(1),
            time_zone: config.mysql_time_zone.clone(),
        })
    }

    /// Now, as stamps are written.
    async fn now(&self, connection: &mut PooledConnection) -> Result<String> {
        let sql = include_str!("../sql/mysql/now.sql");
        let found = connection
            .rows("reading the database's time failed", sql, (self.time_zone.clone(),))
            .await?;
        let now: Option<(Option<String>,)> = found.into_iter().next().map(read).transpose()?;
        now.and_then(|(now,)| now).ok_or_else(|| {
            odd_row("the database does not know the time zone of the session (load its time zone tables, or configure an offset)")
        })
    }
}

/// Runs `$work`, which uses `$connection`, in a transaction out of `$pool`, again where it met another one.
macro_rules! transact {
    ($pool:expr, $what:expr, $connection:ident => $work:expr) => {{
        let mut attempts = Attempts::default();
        loop {
            let mut $connection = $pool.begin($what).await?;
            let done: Result<_> = match $work {
                Ok(done) => $connection.commit($what).await.map(|()| done),
                Err(error) => Err(error),
            };
            match done {
                Ok(done) => {
                    $connection.give_back();
                    break Ok(done);
                }
                Err(error) => {
                    $connection.roll_back($what).await;
                    if !attempts.again(&error).await {
                        break Err(error);
                    }
                }
            }
        }
    }};
}

#[async_trait]
impl Table for MysqlTable {
    async fn check(&self) -> Result<()> {
        let what = "the tables of django-celery-outbox cannot be used";
        let sql = include_str!("../sql/mysql/check.sql");
        self.operating.rows(what, sql, ()).await?;
        Ok(())
    }

    async fn claim(&self, limit: u32, stale: Duration) -> Result<Claim> {
        transact!(self.claiming, "claiming tasks failed", connection => self.claim_in(&mut connection, limit, stale).await)
    }

    async fn settle(&self, stamp: &Stamp, settlement: &Settlement) -> Result<()> {
        let Stamp::Text(stamp) = stamp else {
            return Err(odd_row("the claim is from another database"));
        };
        transact!(self.settling, "settling tasks failed", connection => self.settle_in(&mut connection, stamp, settlement).await)
    }

    async fn retry_dead(&self, ids: Option<&[i64]>, limit: u32) -> Result<u64> {
        if ids.is_some_and(<[i64]>::is_empty) {
            return Ok(0);
        }
        transact!(self.operating, "retrying dead letters failed", connection => retry_dead_in(&mut connection, ids, limit).await)
    }

    async fn purge(&self, which: &Purge) -> Result<Vec<String>> {
        transact!(self.operating, "purging dead letters failed", connection => purge_in(&mut connection, which).await)
    }

    async fn purgeable(&self, which: &Purge) -> Result<Vec<(String, u64)>> {
        let sql = include_str!("../sql/mysql/purgeable.sql");
        let found = self
            .operating
            .rows("counting dead letters failed", sql, purged(which))
            .await?;
        found.into_iter().map(counted).collect()
    }

    async fn failing(&self, most: u32) -> Result<Vec<(String, u64)>> {
        let sql = include_str!("../sql/mysql/failing.sql");
        let found = self.operating.rows("counting tasks failed", sql, (most,)).await?;
        found.into_iter().map(counted).collect()
    }

    async fn stats(&self, stale: Duration) -> Result<Stats> {
        let what = "counting tasks failed";
        let mut connection = self.operating.begin(what).await?;
        let now = self.now(&mut connection).await?;
        let sql = include_str!("../sql/mysql/stats.sql");
        let found = connection.rows(what, sql, (&now, &now, &now, micros(stale))).await?;
        connection.roll_back(what).await;
        let row = found
            .into_iter()
            .next()
            .ok_or_else(|| odd_row("the count returned no row"))?;
        let (eligible, waiting, dead, oldest, first, now): (i64, i64, i64, Option<i64>, Option<i64>, i64) = read(row)?;
        Ok(Stats {
            eligible: eligible.unsigned_abs(),
            waiting: waiting.unsigned_abs(),
            dead: dead.unsigned_abs(),
            oldest: oldest.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))),
            first,
            now: SystemTime::UNIX_EPOCH + Duration::from_micros(now.unsigned_abs()),
        })
    }
}

impl MysqlTable {
    async fn claim_in(&self, connection: &mut PooledConnection, limit: u32, stale: Duration) -> Result<Claim> {
        let what = "claiming tasks failed";
        let now = self.now(connection).await?;
        let sql = include_str!("../sql/mysql/claim.sql");
        let found = connection
            .rows(what, sql, (&now, &now, &now, micros(stale), limit))
            .await?;
        let rows: Vec<Row> = found.into_iter().map(decode).collect::<Result<_>>()?;
        if !rows.is_empty() {
            let ids = rows.iter().map(|row| row.id);
            let sql = with_ids(include_str!("../sql/mysql/stamp.sql"), ids);
            connection.change(what, &sql, (&now,)).await?;
        }
        Ok(Claim {
            rows,
            stamp: Stamp::Text(now),
        })
    }

    async fn settle_in(&self, connection: &mut PooledConnection, stamp: &str, settlement: &Settlement) -> Result<()> {
        let what = "settling tasks failed";
        let Settlement {
            sent,
            failed,
            deferred,
            cooldown,
            held,
            dead,
            released,
        } = settlement;
        if !sent.is_empty() {
            let sql = with_ids(include_str!("../sql/mysql/sent.sql"), sent.iter().copied());
            connection.text(what, &sql).await?;
        }
        if !failed.is_empty() || !deferred.is_empty() || !held.is_empty() {
            let now = self.now(connection).await?;
            for failed in failed {
                let params = (&now, micros(failed.delay), &now, failed.id, stamp);
                connection
                    .change(what, include_str!("../sql/mysql/fail.sql"), params)
                    .await?;
            }
            let defer = include_str!("../sql/mysql/defer.sql");
            if !deferred.is_empty() {
                let params = (&now, micros(*cooldown), &now, stamp);
                connection
                    .change(what, &with_ids(defer, deferred.iter().copied()), params)
                    .await?;
            }
            for held in held {
                let params = (&now, micros(held.delay), &now, stamp);
                connection
                    .change(what, &with_ids(defer, [held.id].into_iter()), params)
                    .await?;
            }
        }
        for dead in dead {
            let params = (&dead.reason, dead.id, stamp);
            connection
                .change(what, include_str!("../sql/mysql/die.sql"), params)
                .await?;
            connection
                .change(what, include_str!("../sql/mysql/bury.sql"), (dead.id, stamp))
                .await?;
        }
        if !released.is_empty() {
            let sql = with_ids(include_str!("../sql/mysql/release.sql"), released.iter().copied());
            connection.change(what, &sql, (stamp,)).await?;
        }
        Ok(())
    }
}

async fn retry_dead_in(connection: &mut PooledConnection, ids: Option<&[i64]>, limit: u32) -> Result<u64> {
    let what = "retrying dead letters failed";
    let which = match ids {
        Some(ids) => with_ids("id IN ({ids})", ids.iter().copied()),
        None => "TRUE".to_owned(),
    };
    let sql = include_str!("../sql/mysql/retry_dead_lock.sql").replace("{which}", &which);
    let locked: Vec<(i64,)> = connection
        .rows(what, &sql, (limit,))
        .await?
        .into_iter()
        .map(read)
        .collect::<Result<_>>()?;
    if locked.is_empty() {
        return Ok(0);
    }
    for sql in [
        include_str!("../sql/mysql/retry_dead.sql"),
        include_str!("../sql/mysql/forget.sql"),
    ] {
        connection
            .text(what, &with_ids(sql, locked.iter().map(|(id,)| *id)))
            .await?;
    }
    Ok(locked.len() as u64)
}

async fn purge_in(connection: &mut PooledConnection, which: &Purge) -> Result<Vec<String>> {
    let what = "purging dead letters failed";
    let found = connection
        .rows(what, include_str!("../sql/mysql/purge.sql"), purged(which))
        .await?;
    let (ids, names): (Vec<i64>, Vec<String>) = found
        .into_iter()
        .map(read::<(i64, String)>)
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    if !ids.is_empty() {
        let sql = with_ids(include_str!("../sql/mysql/forget.sql"), ids.into_iter());
        connection.text(what, &sql).await?;
    }
    Ok(names)
}

/// Which dead letters, as the statements about them take it.
fn purged(which: &Purge) -> (Option<i64>, Option<i64>, String) {
    (
        which.older_than_dead.map(micros),
        which.older_than_created.map(micros),
        which.like(),
    )
}

/// A task's name and a number.
fn counted(row: MysqlRow) -> Result<(String, u64)> {
    let (name, count): (String, i64) = read(row)?;
    Ok((name, count.unsigned_abs()))
}

/// Lists of different lengths would each be prepared anew; numbers can stand in the text.
fn with_ids(sql: &str, ids: impl Iterator<Item = i64>) -> String {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    sql.replace("{ids}", &ids.join(","))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn read<T: mysql_async::prelude::FromRow>(row: MysqlRow) -> Result<T> {
    from_row_opt(row).map_err(|FromRowError(_)| odd_row("a column has an unexpected type"))
}

fn decode(mut row: MysqlRow) -> Result<Row> {
    Ok(Row {
        id: take(&mut row, 0)?,
        task_id: take(&mut row, 1)?,
        task_name: take(&mut row, 2)?,
        args: take(&mut row, 3)?,
        kwargs: take(&mut row, 4)?,
        options: take(&mut row, 5)?,
        retries: u16::try_from(take::<i16>(&mut row, 6)?).unwrap_or(0),
        created_at: match row.take::<Value, _>(7) {
            Some(Value::Date(year, month, day, hour, minute, second, micros)) => {
                let part = |part: u8| i8::try_from(part).unwrap_or(0);
                let at = DateTime::new(
                    i16::try_from(year).unwrap_or(0),
                    part(month),
                    part(day),
                    part(hour),
                    part(minute),
                    part(second),
                    i32::try_from(micros).unwrap_or(0) * 1000,
                );
                in_utc(at.map_err(|error| odd_row(error.to_string()))?)?
            }
            _ => return Err(odd_row("created_at is not a timestamp")),
        },
        sentry_trace_id: take(&mut row, 8)?,
        sentry_baggage: take(&mut row, 9)?,
        structlog_context: take(&mut row, 10)?,
    })
}

fn take<T: mysql_async::prelude::FromValue>(row: &mut MysqlRow, at: usize) -> Result<T> {
    let value = row.take_opt(at).and_then(Result::ok);
    value.ok_or_else(|| odd_row(format!("column {at} has an unexpected type")))
}
