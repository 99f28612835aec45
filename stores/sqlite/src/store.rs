//! The SQLite store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::emit::Names;
use sendoff::store::{
    Backlog, BlockedKey, Figures, Heartbeat, Lane, LaneGrant, OwnerId, Reader, RelayCard, RelayStore, RowRef,
    SettleReport, Settlement, StoreHealth, WakeListener,
};
use sendoff::{Outbox, Result};

use crate::connect::{Connect, Purpose};
use crate::emit::Spares;
use crate::listen::Listener;
use crate::read::SqliteReader;
use crate::sql::Sql;
use crate::worker::Worker;
use crate::{SqliteConfig, settle};

/// How many lanes the tables have: 64 by key or id, 8 for urgent and 8 for idle messages without a key.
pub(crate) const LANES: Lane = 80;

/// An outbox in a SQLite file. It is cheap to clone; all clones share its connections.
#[derive(Debug, Clone)]
pub struct SqliteStore(pub(crate) Arc<Inner>);

/// One connection per part of the store, so that no part waits for another longer than the write lock requires.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: SqliteConfig,
    pub(crate) sql: Arc<Sql>,
    pub(crate) outbox: Outbox,
    pub(crate) jobs: Outbox,
    pub(crate) read: Arc<Worker>,
    pub(crate) settle: Worker,
    pub(crate) lease: Worker,
    pub(crate) work: Worker,
    pub(crate) operate: Worker,
    pub(crate) emit: Arc<Spares>,
}

impl SqliteStore {
    /// Creates a store for this file. It does not open the file yet: the file need not exist before it is
    /// [migrated](sendoff::store::MigrateStore::migrate).
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] for a config that SQLite cannot follow.
    pub fn new(config: SqliteConfig) -> Result<Self> {
        config.check()?;
        let start = |role, purpose| Worker::start(role, Connect::new(&config, purpose));
        Ok(Self(Arc::new(Inner {
            sql: Arc::new(Sql::new(&config.names)),
            outbox: Outbox::builder().names(config.names.clone()).build(),
            jobs: Outbox::builder().names(config.names.clone()).jobs().build(),
            read: Arc::new(start("read", Purpose::Read)?),
            settle: start("settle", Purpose::Settle)?,
            // Its commits are durable, because the note of a quarantined message has to be.
            lease: start("lease", Purpose::Write)?,
            work: start("work", Purpose::Write)?,
            operate: start("operate", Purpose::Write)?,
            emit: Arc::new(Spares::new(Connect::new(&config, Purpose::Emit))),
            config,
        })))
    }

    /// The names of the outbox's tables.
    pub fn names(&self) -> &Names {
        &self.0.config.names
    }

    /// The settings of the store.
    pub fn config(&self) -> &SqliteConfig {
        &self.0.config
    }
}

#[async_trait]
impl RelayStore for SqliteStore {
    fn lanes(&self) -> Lane {
        LANES
    }

    async fn register(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()> {
        self.0.register(owner, card, lease).await
    }

    async fn heartbeat(&self, owner: OwnerId, lease: Duration) -> Result<Heartbeat> {
        self.0.heartbeat(owner, lease).await
    }

    async fn acquire(&self, owner: OwnerId, limit: usize) -> Result<Vec<LaneGrant>> {
        self.0.acquire(owner, limit).await
    }

    async fn release(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        self.0.release(owner, lanes).await
    }

    async fn deregister(&self, owner: OwnerId) -> Result<()> {
        self.0.deregister(owner).await
    }

    async fn evict(&self) -> Result<u64> {
        self.0.evict().await
    }

    async fn clear_quarantine(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        self.0.clear_quarantine(owner, lanes).await
    }

    async fn quarantine(&self, owner: OwnerId, lane: Lane, rows: &[RowRef]) -> Result<()> {
        self.0.quarantine(owner, lane, rows).await
    }

    fn keeps_delivered(&self) -> bool {
        self.0.config.settings.retention.is_some()
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(SqliteReader::new(self.0.read.clone(), self.0.sql.clone()))
    }

    async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>> {
        settle::blocked_keys(&self.0, lanes).await
    }

    async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport> {
        settle::settle(&self.0, owner, settlements).await
    }

    async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64> {
        settle::release_orphans(&self.0, owner, lanes).await
    }

    async fn backlog(&self) -> Result<Backlog> {
        self.0.backlog().await
    }

    async fn health(&self) -> Result<Option<StoreHealth>> {
        self.0.health().await.map(Some)
    }

    async fn write_figures(&self, owner: OwnerId, figures: &Figures) -> Result<()> {
        self.0.write_figures(owner, figures).await
    }

    async fn paused(&self) -> Result<Vec<(String, String)>> {
        self.0.paused().await
    }

    async fn clean(&self, limit: usize) -> Result<u64> {
        self.0.clean(limit).await
    }

    async fn listen(&self) -> Result<Option<Box<dyn WakeListener>>> {
        let listener = Listener::start(&self.0.config).await?;
        Ok(Some(Box::new(listener)))
    }
}
