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
    SettleReport, Settlement, StoreHealth, Stored, Summary,
};
use sendoff::{Result, Uuid};
use tokio::sync::Mutex;

use crate::config::MysqlConfig;
use crate::connect::Connector;
use crate::guard::Guard;
use crate::history::Life;
use crate::operate::list_texts;
use crate::pool::Pool;
use crate::read::MysqlReader;
use crate::texts::Texts;

/// How many lanes the schema has: 64 by hash, 8 for urgent and 8 for idle messages without a key.
pub(crate) const LANES: Lane = 80;

/// Where the trigger puts rows that do not belong into the ready table: what is to come later, and what was written
/// before. No relay leases them.
pub(crate) const SIDE_LANES: [Lane; 2] = [FIRST_SIDE_LANE, FIRST_SIDE_LANE + 1];
pub(crate) const FIRST_SIDE_LANE: Lane = LANES;

/// A lease is worth nothing if renewing it takes longer than it lasts.
const LEASE_LIMIT: Duration = Duration::from_secs(5);

/// Counting, listing and migrating may take long on large tables.
const OPERATE_LIMIT: Duration = Duration::from_secs(600);

/// The MySQL and MariaDB store. It is cheap to clone. It connects when it is first used, and reconnects when the server
/// is back after an outage.
#[derive(Clone)]
pub struct MysqlStore(pub(crate) Arc<Inner>);

/// The state that all clones of the store share.
pub(crate) struct Inner {
    pub(crate) config: MysqlConfig,
    pub(crate) lists: [[ListTexts; 2]; 4],
    pub(crate) texts: Texts,
    pub(crate) outbox: Outbox,
    pub(crate) jobs: Outbox,
    pub(crate) lease_pool: Pool,
    pub(crate) read_pool: Pool,
    pub(crate) settle_pool: Pool,
    pub(crate) work_pool: Pool,
    pub(crate) operate_pool: Pool,
    pub(crate) emit_pool: Pool,
    pub(crate) guard: Arc<Guard>,
    pub(crate) life: Mutex<Life>,
}

impl MysqlStore {
    /// Creates a store with these settings. It does not contact the database yet.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when the URL or a timeout cannot be used.
    pub fn new(config: MysqlConfig) -> Result<Self> {
        let connector = Connector::new(&config)?;
        let limit = config.statement_timeout;
        let pool = |size, limit| Pool::new(connector.clone(), size, limit);
        let guard = Arc::new(Guard::new(connector.lock_wait()));
        let guarded = |size, limit| Pool::guarded(connector.clone(), size, limit, Arc::clone(&guard));
        Ok(Self(Arc::new(Inner {
            lists: list_texts(&config.names),
            texts: Texts::new(&config.names),
            outbox: Outbox::builder().names(config.names.clone()).build(),
            jobs: Outbox::builder().names(config.names.clone()).jobs().build(),
            lease_pool: guarded(2, limit.min(LEASE_LIMIT)),
            read_pool: pool(16, limit),
            settle_pool: guarded(4, limit),
            work_pool: pool(8, limit),
            operate_pool: pool(4, limit.max(OPERATE_LIMIT)),
            emit_pool: pool(64, limit),
            guard,
            life: Mutex::default(),
            config,
        })))
    }

    /// The names of the outbox's tables.
    pub fn names(&self) -> &Names {
        &self.0.config.names
    }
}

/// Without the URL: it may hold a password.
impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlStore")
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl RelayStore for MysqlStore {
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
        Box::new(MysqlReader::new(Arc::clone(&self.0)))
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

    // No listen: MySQL has nothing like it, and the answer of the trait says so. Relays poll.
}

#[async_trait]
impl OperateStore for MysqlStore {
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
