//! Room: clean. What has served its time goes, some at a time, so that nobody waits long for the write lock.

use rusqlite::{Connection, Transaction, params};
use sendoff::Result;
use sendoff::store::{Cleaned, Windows};

use crate::clock::micros;
use crate::lease::write;
use crate::operate::write_audit;
use crate::sql::Sql;
use crate::store::Inner;

impl Inner {
    /// On a relay's schedule, by the windows of the config and of the tables.
    pub(crate) async fn clean(&self, limit: usize) -> Result<u64> {
        let sql = self.sql.clone();
        let (retention, dead) = (
            self.config.retention.map(micros),
            self.config.dead_retention.map(micros),
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
                allowance.delete_by_age(&tx, sql.clean_items.first(), Some(retention))?;
            }
            if let Some(age) = dead {
                allowance.delete_by_age(&tx, sql.clean_dead.first(), Some(age))?;
            }
            tx.commit()?;
            Ok(allowance.deleted)
        };
        self.operate.call("what is old could not be cleaned up", work).await
    }

    /// By an operator, by windows of their own.
    pub(crate) async fn clean_up(&self, windows: &Windows, limit: usize, who: &str) -> Result<Cleaned> {
        let (sql, windows, who) = (self.sql.clone(), *windows, who.to_owned());
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let cleaned = clean_up(&tx, &sql, &windows, limit)?;
            write_audit(&tx, &sql, &who, "clean", &as_asked(&windows), cleaned.deleted)?;
            tx.commit()?;
            Ok(cleaned)
        };
        self.operate.call("what is old could not be cleaned up", work).await
    }
}

fn clean_up(tx: &Transaction<'_>, sql: &Sql, windows: &Windows, limit: usize) -> rusqlite::Result<Cleaned> {
    let [delivered, dead, inbox] = [windows.delivered, windows.dead, windows.inbox].map(|window| window.map(micros));
    let mut allowance = Allowance::of(limit);
    if delivered.is_some() {
        allowance.delete_by_age(tx, sql.clean_delivered.first(), delivered)?;
        allowance.delete_by_age(tx, sql.clean_items.first(), delivered)?;
    }
    if dead.is_some() {
        allowance.delete_by_age(tx, sql.clean_dead.first(), dead)?;
    }
    if windows.dedup {
        allowance.delete(tx, sql.clean_dedup.first())?;
    }
    if inbox.is_some() {
        allowance.delete_by_age(tx, sql.clean_inbox.first(), inbox)?;
    }
    let mut left = tx.prepare_cached(sql.clean_left.first())?;
    let remaining: i64 = left.query_row(params![delivered, dead, windows.dedup, inbox], |row| row.get(0))?;
    Ok(Cleaned {
        deleted: allowance.deleted,
        remaining: u64::try_from(remaining).unwrap_or_default(),
    })
}

fn as_asked(windows: &Windows) -> String {
    let seconds = |window: Option<std::time::Duration>| window.map(|window| window.as_secs());
    serde_json::json!({
        "delivered_seconds": seconds(windows.delivered),
        "dead_seconds": seconds(windows.dead),
        "dedup": windows.dedup,
        "inbox_seconds": seconds(windows.inbox),
    })
    .to_string()
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
