//! The tables, whatever database they are in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sendoff::Result;

use crate::error::of_table;
use crate::mysql::MysqlTable;
use crate::postgres::PostgresTable;
use crate::sqlite::SqliteTable;
use crate::table::Table;
use crate::{Claim, Database, DjangoConfig, Purge, Settlement, Stamp, Stats};

/// `celery_outbox` and `celery_outbox_dead_letter`.
///
/// Every decision about time is the database's: a host's clock is never asked.
#[derive(Clone)]
pub struct DjangoOutbox(Arc<dyn Table>);

impl DjangoOutbox {
    /// Sets it up. Nothing is asked of the database yet.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when the settings cannot be used.
    pub fn new(config: &DjangoConfig) -> Result<Self> {
        Ok(Self(match &config.database {
            Database::Postgres(url) => Arc::new(PostgresTable::new(url, config)?),
            Database::Mysql(url) => Arc::new(MysqlTable::new(url, config)?),
            Database::Sqlite(path) => Arc::new(SqliteTable::new(path, config)),
        }))
    }

    /// Checks that the tables are there, with the columns of version 0.4.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::SchemaMissing`] and [`sendoff::ErrorKind::SchemaTooOld`] with advice; as for all below, what
    /// the database said.
    pub async fn check(&self) -> Result<()> {
        self.0.check().await.map_err(of_table)
    }

    /// Claims up to `limit` eligible rows, lowest ids first where there are more, and stamps them.
    ///
    /// Eligible is what was never tried, whose `retry_after` has come and that nobody has claimed since, or what somebody
    /// claimed longer than `stale` ago and neither settled nor deferred; and only what has a schema version that is known.
    ///
    /// # Errors
    /// What the database said. A claim that was made and not heard of becomes stale.
    pub async fn claim(&self, limit: u32, stale: Duration) -> Result<Claim> {
        self.0.claim(limit, stale).await.map_err(of_table)
    }

    /// Writes back what became of rows of one claim, in one transaction.
    ///
    /// A row that another relay has claimed since keeps that relay's stamp: only a delivered row is still deleted.
    ///
    /// # Errors
    /// What the database said; then nothing was written.
    pub async fn settle(&self, stamp: &Stamp, settlement: &Settlement) -> Result<()> {
        if settlement.is_empty() {
            return Ok(());
        }
        self.0.settle(stamp, settlement).await.map_err(of_table)
    }

    /// Brings dead letters back, as new rows without retries: these, or all, and at most so many. Tells how many.
    ///
    /// # Errors
    /// What the database said; then none came back.
    pub async fn retry_dead(&self, ids: Option<&[i64]>, limit: u32) -> Result<u64> {
        self.0.retry_dead(ids, limit).await.map_err(of_table)
    }

    /// Deletes these dead letters, some at a time. Tells how many there were of each task.
    ///
    /// # Errors
    /// What the database said; those before it are deleted.
    pub async fn purge(&self, which: &Purge) -> Result<BTreeMap<String, u64>> {
        let mut purged = BTreeMap::new();
        loop {
            let some = self.0.purge(which).await.map_err(of_table)?;
            if some.is_empty() {
                return Ok(purged);
            }
            for name in some {
                *purged.entry(name).or_insert(0) += 1;
            }
        }
    }

    /// How many dead letters of each task [`DjangoOutbox::purge`] would delete.
    ///
    /// # Errors
    /// What the database said.
    pub async fn purgeable(&self, which: &Purge) -> Result<BTreeMap<String, u64>> {
        let found = self.0.purgeable(which).await.map_err(of_table)?;
        Ok(found.into_iter().collect())
    }

    /// The tasks with the most failed attempts among the rows that wait, at most so many, with the number of attempts.
    ///
    /// # Errors
    /// What the database said.
    pub async fn failing(&self, most: u32) -> Result<Vec<(String, u64)>> {
        self.0.failing(most).await.map_err(of_table)
    }

    /// Counts rows. It reads the whole table.
    ///
    /// # Errors
    /// What the database said.
    pub async fn stats(&self, stale: Duration) -> Result<Stats> {
        self.0.stats(stale).await.map_err(of_table)
    }
}
