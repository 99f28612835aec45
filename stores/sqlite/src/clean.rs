//! Clean: deletes rows that are past their retention, in small batches, so that no other transaction waits long for the
//! write lock.

use rusqlite::{Connection, Transaction, params};
use sendoff::Result;
use sendoff::store::{Action, CleanCount, Cleaned, Command, Retention};

use crate::clock::micros;
use crate::lease::write;
use crate::operate::Batch;
use crate::sql::Sql;
use crate::store::Inner;

impl Inner {
    /// On a relay's schedule, by the windows of the config and of the tables.
    pub(crate) async fn clean(&self, limit: usize) -> Result<u64> {
        let sql = self.sql.clone();
        let (retention, dead) = (
            self.config.settings.retention.map(micros),
            self.config.settings.dead_retention.map(micros),
        );
        let work = move |connection: &mut Connection| {
            let mut needed = connection.prepare_cached(sql.clean_needed.first())?;
            if !needed.query_row([retention, dead], |row| row.get::<_, bool>(0))? {
                return Ok(0);
            }
            drop(needed);
            let tx = write(connection)?;
            let mut allowance = Allowance::of(limit);
            allowance.delete(&tx, sql.clean_dedup.first())?;
            allowance.delete_by_age(&tx, sql.clean_inbox.first(), None)?;
            if let Some(retention) = retention {
                allowance.delete_by_age(&tx, sql.clean_delivered.first(), Some(retention))?;
                allowance.delete_by_age(&tx, sql.clean_jobs.first(), Some(retention))?;
            }
            if let Some(age) = dead {
                allowance.delete_by_age(&tx, sql.clean_dead.first(), Some(age))?;
            }
            tx.commit()?;
            Ok(allowance.deleted)
        };
        self.operate.call("expired rows could not be deleted", work).await
    }

    pub(crate) async fn clean_count(&self, retention: &Retention) -> Result<CleanCount> {
        let (sql, dedup) = (self.sql.clone(), retention.dedup);
        let [delivered, dead, inbox] =
            [retention.delivered, retention.dead, retention.inbox].map(|window| window.map(micros));
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(sql.clean_count.first())?;
            statement.query_row(params![delivered, dead, dedup, inbox], |row| {
                Ok(CleanCount {
                    old: row.get::<_, i64>(0)?.unsigned_abs(),
                    all: row.get::<_, i64>(1)?.unsigned_abs(),
                })
            })
        };
        self.operate.call("expired rows could not be counted", work).await
    }

    /// By an operator, by windows of their own.
    pub(crate) async fn clean_up(&self, retention: &Retention, limit: usize, command: &mut Command) -> Result<Cleaned> {
        let batch = Batch {
            what: "expired rows could not be deleted",
            action: Action::CleanUp,
            asked: retention.asked().to_string(),
        };
        let retention = *retention;
        let act = move |tx: &Transaction<'_>, sql: &Sql| {
            let Allowance { left, deleted } = clean_up(tx, sql, &retention, limit)?;
            let more = left == 0;
            Ok(Cleaned { deleted, more })
        };
        self.act_for(command, batch, act, |cleaned| cleaned.deleted).await
    }
}

fn clean_up(tx: &Transaction<'_>, sql: &Sql, retention: &Retention, limit: usize) -> rusqlite::Result<Allowance> {
    let [delivered, dead, inbox] =
        [retention.delivered, retention.dead, retention.inbox].map(|window| window.map(micros));
    let mut allowance = Allowance::of(limit);
    if delivered.is_some() {
        allowance.delete_by_age(tx, sql.clean_delivered.first(), delivered)?;
        allowance.delete_by_age(tx, sql.clean_jobs.first(), delivered)?;
    }
    if dead.is_some() {
        allowance.delete_by_age(tx, sql.clean_dead.first(), dead)?;
    }
    if retention.dedup {
        allowance.delete(tx, sql.clean_dedup.first())?;
    }
    if inbox.is_some() {
        allowance.delete_by_age(tx, sql.clean_inbox.first(), inbox)?;
    }
    Ok(allowance)
}

/// How much may still be deleted.
struct Allowance {
    left: i64,
    deleted: u64,
}

impl Allowance {
    fn of(limit: usize) -> Self {
        Self {
            left: i64::try_from(limit).unwrap_or(i64::MAX),
            deleted: 0,
        }
    }

    /// Runs a statement that takes a limit.
    fn delete(&mut self, tx: &Transaction<'_>, text: &str) -> rusqlite::Result<()> {
        let gone = tx.prepare_cached(text)?.execute([self.left])?;
        self.count(gone);
        Ok(())
    }

    /// Runs a statement that takes an age, or none where it knows one itself, and a limit.
    fn delete_by_age(&mut self, tx: &Transaction<'_>, text: &str, age: Option<i64>) -> rusqlite::Result<()> {
        let gone = tx.prepare_cached(text)?.execute(params![age, self.left])?;
        self.count(gone);
        Ok(())
    }

    fn count(&mut self, gone: usize) {
        self.left = self.left.saturating_sub(i64::try_from(gone).unwrap_or(i64::MAX));
        self.deleted += u64::try_from(gone).unwrap_or_default();
    }
}
