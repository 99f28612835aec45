//! The store: implements every trait, with the code in one file per part.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sendoff::emit::{Names, Outbox};
use sendoff::store::{
    AuditView, Backlog, BlockedKey, CleanCount, Cleaned, Command, Direction, EndedAt, Figures, Filter, Heartbeat,
    KeyView, Lane, LaneGrant, LaneView, ListTable, ListTexts, Looked, LookedEnded, OperateStore, Overview, OwnerId,
    Pausable, PauseView, Reader, Reaped, RelayCard, RelayStore, Retention, RetriedBatch, RetryOptions, RowRef,
    SettleReport, Settlement, StoreHealth, Stored, Summary, WakeListener,
};
use sendoff::{Result, Uuid};

use crate::config::PostgresConfig;
use crate::connect::Connector;
use crate::operate::list_texts;
use crate::pool::Pool;
use crate::read::PostgresReader;
use crate::texts::Texts;

/// How many lanes the schema has: 64 by hash, 8 for urgent and 8 for idle messages without a key.
pub(crate) const LANES: Lane = 80;

/// A lease is worth nothing if renewing it takes longer than it lasts.
const LEASE_LIMIT: Duration = Duration::from_secs(5);

/// Between two statements of one transaction nothing is waited for but the network. Whoever takes longer is gone, and its
/// locks must go, too. Transactions that emit are the caller's.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// The same for the rows of relays and lanes, which others need within a lease.
const LEASE_IDLE_LIMIT: Duration = Duration::from_secs(2);

/// Counting, listing and migrating may take long on large tables.
const OPERATE_LIMIT: Duration = Duration::from_secs(600);

/// The PostgreSQL store. It is cheap to clone. It connects when it is first used, and reconnects when the server is
/// back after an outage.
#[derive(Clone)]
pub struct PostgresStore(pub(crate) Arc<Inner>);

/// The state that all clones of the store share.
pub(crate) struct Inner {
    pub(crate) config: PostgresConfig,
    pub(crate) lists: [[ListTexts; 2]; 4],
    pub(crate) texts: Texts,
    pub(crate) outbox: Outbox,
    pub(crate) jobs: Outbox,
    pub(crate) connector: Connector,
    pub(crate) lease_pool: Pool,
    pub(crate) read_pool: Pool,
    pub(crate) settle_pool: Pool,
    pub(crate) work_pool: Pool,
    pub(crate) done_pool: Pool,
    pub(crate) operate_pool: Pool,
    pub(crate) emit_pool: Pool,
}

impl PostgresStore {
    /// Creates a store with these settings. It does not contact the database yet.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when the URL or a timeout cannot be used.
    pub fn new(config: PostgresConfig) -> Result<Self> {
        let connector = Connector::new(&config)?;
        let limit = config.statement_timeout;
        let pool = |size, limit, idle, settings| Pool::new(connector.clone(), size, limit, idle, settings);
        let idle = Some(IDLE_LIMIT);
        Ok(Self(Arc::new(Inner {
            lists: list_texts(&config.names),
            texts: Texts::new(&config.names),
            outbox: Outbox::builder().names(config.names.clone()).build(),
            jobs: Outbox::builder().names(config.names.clone()).jobs().build(),
            lease_pool: pool(2, limit.min(LEASE_LIMIT), Some(LEASE_IDLE_LIMIT), ""),
            read_pool: pool(16, limit, idle, crate::read::SETTINGS),
            settle_pool: pool(4, limit, idle, crate::settle::SETTINGS),
            work_pool: pool(8, limit, idle, crate::work::SETTINGS),
            done_pool: pool(4, limit, idle, crate::work::DONE_SETTINGS),
            operate_pool: pool(4, limit.max(OPERATE_LIMIT), idle, ""),
            emit_pool: pool(64, limit, None, ""),
            connector,
            config,
        })))
    }

    /// The names of the outbox's tables.
    pub fn names(&self) -> &Names {
        &self.0.config.names
    }

    /// The SQL that creates one role each for emitting, relaying, operating and reading, with exactly the rights that
    /// it needs. An operator runs the SQL after `sendoff migrate`, as the owner of the tables with the right to create
    /// roles.
    pub fn roles_sql(&self) -> String {
        crate::roles::roles_sql(self.names())
    }

    /// Creates the roles with the SQL of [`roles_sql`](Self::roles_sql). It is safe to repeat.
    ///
    /// # Errors
    /// What the database says, as to somebody who may not create roles.
    pub async fn create_roles(&self) -> Result<()> {
        self.0.create_roles().await
    }
}

/// Without the URL: it may hold a password.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl RelayStore for PostgresStore {
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
        Box::new(PostgresReader::new(Arc::clone(&self.0)))
    }

    async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>> {
        self.0.blocked_keys(lanes).await
    }

    async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport> {
        self.0.settle(owner, settlements).await
    }

    async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64> {
        self.0.release_orphans(owner, lanes).await
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
        self.0.listen().await
    }
}

#[async_trait]
impl OperateStore for PostgresStore {
    async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>> {
        self.0.next_number(table, from, direction).await
    }

    async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked> {
        self.0.look(table, filter, numbers, direction, limit).await
    }

    async fn look_ended(
        &self,
        table: ListTable,
        filter: &Filter,
        from: Option<EndedAt>,
        direction: Direction,
        rows: usize,
        limit: usize,
    ) -> Result<LookedEnded> {
        self.0.look_ended(table, filter, from, direction, rows, limit).await
    }

    async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        self.0.find(id).await
    }

    async fn summary(&self) -> Result<Summary> {
        self.0.summary().await
    }

    async fn now(&self) -> Result<SystemTime> {
        self.0.now().await
    }

    async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        self.0.retry_dead(filter, until, limit, command).await
    }

    async fn count(&self, filter: &Filter) -> Result<u64> {
        self.0.count(filter).await
    }

    async fn retry_waiting(
        &self,
        filter: &Filter,
        how: RetryOptions,
        after: Option<&RowRef>,
        limit: usize,
        command: &mut Command,
    ) -> Result<RetriedBatch> {
        self.0.retry_waiting(filter, how, after, limit, command).await
    }

    async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        self.0.retry_waiting_count(filter, how).await
    }

    async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        self.0.discard_dead(filter, until, limit, command).await
    }

    async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        self.0.keys(limit).await
    }

    async fn release_key(&self, key: &str, sink: Option<&str>, who: &str) -> Result<u64> {
        self.0.release_key(key, sink, who).await
    }

    async fn published_routes(&self) -> Result<Vec<String>> {
        self.0.published_routes().await
    }

    async fn lane_views(&self) -> Result<Vec<LaneView>> {
        self.0.lane_views().await
    }

    async fn overview(&self) -> Result<Overview> {
        self.0.overview().await
    }

    async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        self.0.pause(what, who).await
    }

    async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        self.0.resume(what, who).await
    }

    async fn pauses(&self) -> Result<Vec<PauseView>> {
        self.0.pauses().await
    }

    async fn reap_gone(&self, stale_after: Duration, who: &str) -> Result<Reaped> {
        self.0.reap_gone(stale_after, who).await
    }

    async fn clean_count(&self, retention: &Retention) -> Result<CleanCount> {
        self.0.clean_count(retention).await
    }

    async fn clean_up(&self, retention: &Retention, limit: usize, command: &mut Command) -> Result<Cleaned> {
        self.0.clean_up(retention, limit, command).await
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        self.0.audits(limit).await
    }
}
