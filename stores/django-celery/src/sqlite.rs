//! The tables in a SQLite file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use sendoff::{Error, ErrorKind, Result};
use sendoff_store_sqlite::connection::{breaks_connection, explain, wait_for_locks};

use crate::error::odd_row;
use crate::instant::from_text;
use crate::table::Table;
use crate::{Claim, DjangoConfig, Purge, Row, Settlement, Stamp, Stats};

pub(crate) struct SqliteTable(Arc<Inner>);

struct Inner {
    path: PathBuf,
    lock_timeout: Duration,
    /// One, because SQLite has one writer.
    connection: Mutex<Option<Connection>>,
}

impl SqliteTable {
    pub(crate) fn new(path: &Path, config: &DjangoConfig) -> Self {
        Self(Arc::new(Inner {
            path: path.to_owned(),
            lock_timeout: config.statement_timeout,
            connection: Mutex::new(None),
        }))
    }

    /// Runs `work` in a transaction that may write, on a thread that may block.
    async fn transact<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || inner.transact(what, work)).await;
        done.unwrap_or_else(|error| Err(Error::new(ErrorKind::Backend, what).because(error.to_string())))
    }
}

impl Inner {
    fn transact<T>(&self, what: &'static str, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut place = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out, so that a panic or an error that breaks it leaves none behind.
        let mut connection = match place.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        // The thread that waits for a lock has to know how long, and any thread may be the one.
        let waiting = wait_for_locks(&connection, self.lock_timeout);
        let done = waiting.and_then(|()| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        if !done.as_ref().is_err_and(breaks_connection) {
            *place = Some(connection);
        }
        done.map_err(|error| explain(what, error))
    }

    /// The file is Django's: nothing about it is changed, and none is made.
    fn open(&self) -> Result<Connection> {
        if !self.path.exists() {
            return Err(Error::new(ErrorKind::SchemaMissing, "the database file does not exist")
                .because(format!("{} does not exist", self.path.display()))
                .next_step("check the path; it must be the database file that Django uses"));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(&self.path, flags)
            .map_err(|error| explain(&format!("the database {} cannot be opened", self.path.display()), error))
    }
}

#[async_trait]
impl Table for SqliteTable {
    async fn check(&self) -> Result<()> {
        self.transact("the tables of django-celery-outbox cannot be used", |connection| {
            connection.query_row(include_str!("../sql/sqlite/check.sql"), [], |_| Ok(()))
        })
        .await
    }

    async fn claim(&self, limit: u32, stale: Duration) -> Result<Claim> {
        let claimed = self.transact("claiming tasks failed", move |connection| {
            let now = now(connection)?;
            let mut statement = connection.prepare_cached(include_str!("../sql/sqlite/claim.sql"))?;
            let found = statement.query_map(params![now, before(stale), limit], |row| decode(row, &now))?;
            let rows = found.collect::<rusqlite::Result<Vec<Row>>>()?;
            Ok((rows, now))
        });
        let (mut rows, now) = claimed.await?;
        rows.sort_unstable_by_key(|row| row.id);
        Ok(Claim {
            rows,
            stamp: Stamp::Text(now),
        })
    }

    async fn settle(&self, stamp: &Stamp, settlement: &Settlement) -> Result<()> {
        let Stamp::Text(stamp) = stamp.clone() else {
            return Err(odd_row("the claim is from another database"));
        };
        let settlement = settlement.clone();
        self.transact("settling tasks failed", move |connection| {
            settle_in(connection, &stamp, &settlement)
        })
        .await
    }

    async fn retry_dead(&self, ids: Option<&[i64]>, limit: u32) -> Result<u64> {
        let ids = ids.map(<[i64]>::to_vec);
        self.transact("retrying dead letters failed", move |connection| {
            let picked = match ids {
                Some(mut ids) => {
                    ids.sort_unstable();
                    ids.dedup();
                    ids
                }
                None => connection
                    .prepare(include_str!("../sql/sqlite/retry_dead_pick.sql"))?
                    .query_map([limit], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?,
            };
            let now = now(connection)?;
            let mut retried = 0;
            for id in picked {
                if retried >= u64::from(limit) {
                    break;
                }
                retried += connection.execute(include_str!("../sql/sqlite/retry_dead.sql"), params![id, now])? as u64;
                connection.execute(include_str!("../sql/sqlite/forget.sql"), [id])?;
            }
            Ok(retried)
        })
        .await
    }

    async fn purge(&self, which: &Purge) -> Result<Vec<String>> {
        let params = purged(which);
        self.transact("purging dead letters failed", move |connection| {
            let mut statement = connection.prepare(include_str!("../sql/sqlite/purge.sql"))?;
            statement.query_map(params, |row| row.get(0))?.collect()
        })
        .await
    }

    async fn purgeable(&self, which: &Purge) -> Result<Vec<(String, u64)>> {
        let params = purged(which);
        self.transact("counting dead letters failed", move |connection| {
            let mut statement = connection.prepare(include_str!("../sql/sqlite/purgeable.sql"))?;
            statement.query_map(params, counted)?.collect()
        })
        .await
    }

    async fn failing(&self, most: u32) -> Result<Vec<(String, u64)>> {
        self.transact("counting tasks failed", move |connection| {
            let mut statement = connection.prepare(include_str!("../sql/sqlite/failing.sql"))?;
            statement.query_map([most], counted)?.collect()
        })
        .await
    }

    async fn stats(&self, stale: Duration) -> Result<Stats> {
        self.transact("counting tasks failed", move |connection| {
            let now = now(connection)?;
            let sql = include_str!("../sql/sqlite/stats.sql");
            connection.query_row(sql, params![now, before(stale)], |row| {
                let count = |at| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.unsigned_abs());
                let oldest: Option<f64> = row.get(3)?;
                Ok(Stats {
                    eligible: count(0)?,
                    waiting: count(1)?,
                    dead: count(2)?,
                    oldest: oldest.map(|seconds| Duration::from_secs_f64(seconds.max(0.0))),
                    first: row.get(4)?,
                    now: SystemTime::UNIX_EPOCH + Duration::from_secs_f64(row.get::<_, f64>(5)?.max(0.0)),
                })
            })
        })
        .await
    }
}

/// Which dead letters, as the statements about them take it.
fn purged(which: &Purge) -> [Option<String>; 3] {
    [
        which.older_than_dead.map(before),
        which.older_than_created.map(before),
        Some(which.glob()),
    ]
}

/// A task's name and a number.
fn counted(row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, u64)> {
    Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
}

fn settle_in(connection: &Connection, stamp: &str, settlement: &Settlement) -> rusqlite::Result<()> {
    let Settlement {
        sent,
        failed,
        dead,
        released,
        ..
    } = settlement;
    let now = now(connection)?;
    let run = |sql, params: &[&dyn rusqlite::ToSql]| connection.prepare_cached(sql)?.execute(params);
    for id in sent {
        run(include_str!("../sql/sqlite/sent.sql"), &[id])?;
    }
    for failed in failed {
        let params: [&dyn rusqlite::ToSql; 4] = [&failed.id, &now, &after(failed.delay), &stamp];
        run(include_str!("../sql/sqlite/fail.sql"), &params)?;
    }
    for (id, delay) in settlement.put_off() {
        run(
            include_str!("../sql/sqlite/defer.sql"),
            &[&id, &now, &after(delay), &stamp],
        )?;
    }
    for dead in dead {
        let params: [&dyn rusqlite::ToSql; 4] = [&dead.id, &now, &dead.reason, &stamp];
        run(include_str!("../sql/sqlite/die.sql"), &params)?;
        run(include_str!("../sql/sqlite/bury.sql"), &[&dead.id, &stamp])?;
    }
    for id in released {
        run(include_str!("../sql/sqlite/release.sql"), &[id, &stamp])?;
    }
    Ok(())
}

fn now(connection: &Connection) -> rusqlite::Result<String> {
    connection
        .prepare_cached(include_str!("../sql/sqlite/now.sql"))?
        .query_row([], |row| row.get(0))
}

/// As SQLite's functions take it.
fn after(delay: Duration) -> String {
    format!("+{:.3} seconds", delay.as_secs_f64())
}

fn before(delay: Duration) -> String {
    format!("-{:.3} seconds", delay.as_secs_f64())
}

fn decode(row: &rusqlite::Row<'_>, now: &str) -> rusqlite::Result<Row> {
    let created_at: String = row.get(7)?;
    let retries: i64 = row.get(6)?;
    Ok(Row {
        id: row.get(0)?,
        task_id: row.get(1)?,
        task_name: row.get(2)?,
        args: row.get(3)?,
        kwargs: row.get(4)?,
        options: row.get(5)?,
        retries: u16::try_from(retries).unwrap_or(0),
        // A column of SQLite takes any text. One row by hand must not stop all others.
        created_at: from_text(&created_at)
            .or_else(|_| from_text(now))
            .unwrap_or(SystemTime::UNIX_EPOCH),
        sentry_trace_id: row.get(8)?,
        sentry_baggage: row.get(9)?,
        structlog_context: row.get(10)?,
    })
}
