//! The tables of django-celery-outbox, in any of the supported databases.

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

/// The tables `celery_outbox` and `celery_outbox_dead_letter`.
///
/// All times come from the database's clock; a host's clock is never used.
#[derive(Clone)]
pub struct DjangoOutbox(Arc<dyn Table>);

impl DjangoOutbox {
    /// Creates the outbox. It does not contact the database yet.
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

    /// Checks that the tables exist, with the columns of django-celery-outbox 0.4.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::SchemaMissing`] and [`sendoff::ErrorKind::SchemaTooOld`] with a next step; errors of the
    /// database.
    pub async fn check(&self) -> Result<()> {
        self.0.check().await.map_err(of_table)
    }

    /// Claims up to `limit` eligible rows, lowest ids first, and writes a stamp to them.
    ///
    /// A row is eligible if it was never tried, if its `retry_after` has passed and no relay has claimed it since, or if a
    /// relay claimed it longer than `stale` ago and neither settled nor deferred it. Rows with an unknown schema version
    /// are never eligible.
    ///
    /// # Errors
    /// Errors of the database. If the answer to a claim is lost, the claim becomes stale.
    pub async fn claim(&self, limit: u32, stale: Duration) -> Result<Claim> {
        self.0.claim(limit, stale).await.map_err(of_table)
    }

    /// Writes the results of one claim's rows, in one transaction.
    ///
    /// A row that another relay has claimed since then keeps that relay's stamp: it is not changed, unless it was
    /// delivered, and is then deleted.
    ///
    /// # Errors
    /// Errors of the database; then nothing was written.
    pub async fn settle(&self, stamp: &Stamp, settlement: &Settlement) -> Result<()> {
        if settlement.is_empty() {
            return Ok(());
        }
        self.0.settle(stamp, settlement).await.map_err(of_table)
    }

    /// Retries up to `limit` dead letters: those with these ids, or all. They become new rows without failed attempts.
    /// Returns the number of retried dead letters.
    ///
    /// # Errors
    /// Errors of the database; then no dead letter was retried.
    pub async fn retry_dead(&self, ids: Option<&[i64]>, limit: u32) -> Result<u64> {
        self.0.retry_dead(ids, limit).await.map_err(of_table)
    }

    /// Deletes the selected dead letters, in batches. Returns the number of deleted dead letters of each task.
    ///
    /// # Errors
    /// Errors of the database; batches before the error stay deleted.
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

    /// The number of dead letters of each task that [`DjangoOutbox::purge`] would delete.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn purgeable(&self, which: &Purge) -> Result<BTreeMap<String, u64>> {
        let found = self.0.purgeable(which).await.map_err(of_table)?;
        Ok(found.into_iter().collect())
    }

    /// Up to `most` waiting tasks with the most failed attempts, each with its number of attempts.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn failing(&self, most: u32) -> Result<Vec<(String, u64)>> {
        self.0.failing(most).await.map_err(of_table)
    }

    /// Counts rows by state. It reads the whole table.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn stats(&self, stale: Duration) -> Result<Stats> {
        self.0.stats(stale).await.map_err(of_table)
    }
}
