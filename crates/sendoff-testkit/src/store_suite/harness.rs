//! What a store's tests provide.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{EmitStore, MigrateStore, OperateStore, RelayStore, StoreSettings, WorkStore};
use sendoff::{BoxError, Error, ErrorKind, Result};

/// What a store has, as far as stores may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// [`Database::execute`] and [`Database::fetch`] run SQL.
    pub sql: bool,
    /// The store has a schema that it migrates.
    pub migrations: bool,
    /// Several transactions may have written something and be open at the same time.
    pub concurrent_transactions: bool,
    /// The store has jobs: [`Subject::work`] is there.
    pub jobs: bool,
    /// Relays can write figures, and operators get an overview.
    pub figures: bool,
}

/// How a database is to be set up for a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Whether the tables are there.
    pub migrated: bool,
    /// Whether delivered messages are kept.
    pub keep_delivered: bool,
    /// How long relays keep dead letters; `None`: until an operator acts.
    pub dead_retention: Option<Duration>,
    /// How long idempotency keys are remembered, in whole seconds; `None` is the store's default.
    pub dedup_window: Option<Duration>,
    /// How long notes of consumers are remembered, in the same way.
    pub inbox_retention: Option<Duration>,
    /// How often a job is tried that has no limit of its own; `None` is the store's default.
    pub job_max_attempts: Option<u16>,
}

impl Setup {
    /// With tables, and everything else by default.
    pub const PLAIN: Self = Self {
        migrated: true,
        keep_delivered: false,
        dead_retention: None,
        dedup_window: None,
        inbox_retention: None,
        job_max_attempts: None,
    };

    /// The settings of a store that is set up like this.
    pub fn settings(&self) -> StoreSettings {
        StoreSettings {
            retention: self.keep_delivered.then_some(Duration::from_secs(86_400)),
            dead_retention: self.dead_retention,
            dedup_window: self.dedup_window,
            inbox_retention: self.inbox_retention,
            job_max_attempts: self.job_max_attempts,
        }
    }
}

/// Makes databases for a store's cases. A server that cannot be reached is an error: no case is skipped.
#[async_trait]
pub trait StoreHarness: Send + Sync + 'static {
    /// What the store has.
    fn capabilities(&self) -> Capabilities;

    /// A database that nobody has used yet.
    ///
    /// # Errors
    /// What stands in the way; the case fails with it.
    async fn fresh(&self, setup: Setup) -> Result<Subject>;
}

/// A store under test, room by room.
#[derive(Clone)]
pub struct Subject {
    /// Room: emit.
    pub emit: Arc<dyn EmitStore>,
    /// Room: relay.
    pub relay: Arc<dyn RelayStore>,
    /// Room: operate.
    pub operate: Arc<dyn OperateStore>,
    /// Room: work, where the store has it.
    pub work: Option<Arc<dyn WorkStore>>,
    /// Room: migrate.
    pub migrate: Arc<dyn MigrateStore>,
    /// What is behind it.
    pub database: Arc<dyn Database>,
}

impl Subject {
    /// A store without jobs.
    pub fn new<S>(store: S, database: impl Database + 'static) -> Self
    where
        S: EmitStore + RelayStore + OperateStore + MigrateStore + 'static,
    {
        Self::of(Arc::new(store), Arc::new(database))
    }

    /// A store with jobs.
    pub fn with_jobs<S>(store: S, database: impl Database + 'static) -> Self
    where
        S: EmitStore + RelayStore + OperateStore + MigrateStore + WorkStore + 'static,
    {
        let store = Arc::new(store);
        Self {
            work: Some(store.clone()),
            ..Self::of(store, Arc::new(database))
        }
    }

    fn of<S>(store: Arc<S>, database: Arc<dyn Database>) -> Self
    where
        S: EmitStore + RelayStore + OperateStore + MigrateStore + 'static,
    {
        Self {
            emit: store.clone(),
            relay: store.clone(),
            operate: store.clone(),
            work: None,
            migrate: store,
            database,
        }
    }
}

/// The error when a harness cannot do its part.
pub fn harness_failed(error: impl Into<BoxError>) -> Error {
    let error = error.into();
    Error::new(ErrorKind::Backend, "the harness could not do its part")
        .because(error.to_string())
        .with_source(error)
}

/// The database behind a store under test.
///
/// SQL is written with the default names (`outbox_…`); the harness puts those of the case in their place.
#[async_trait]
pub trait Database: Send + Sync {
    /// Another store on the same database, with connections of its own.
    ///
    /// # Errors
    /// What stands in the way.
    async fn open(&self) -> Result<Subject>;

    /// Runs SQL in a transaction of its own and tells how many rows it changed.
    ///
    /// # Errors
    /// What the database says; [`sendoff::ErrorKind::Unsupported`] without [`Capabilities::sql`].
    async fn execute(&self, sql: &str) -> Result<u64> {
        let _ = sql;
        Err(no_sql())
    }

    /// Runs SQL with the names that are in it, several statements if need be.
    ///
    /// # Errors
    /// As [`Database::execute`].
    async fn run_script(&self, sql: &str) -> Result<()> {
        let _ = sql;
        Err(no_sql())
    }

    /// The rows of a query, each value as text.
    ///
    /// # Errors
    /// As [`Database::execute`].
    async fn fetch(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        let _ = sql;
        Err(no_sql())
    }

    /// Empties the ready table and lets its numbers begin again, as in a database that was restored or truncated. What
    /// waits and what is dead stays.
    ///
    /// # Errors
    /// What the database says.
    async fn set_back(&self) -> Result<()>;

    /// SQL that makes a ready row of the topic `vandalised` unreadable in a way that only this database allows, each
    /// with a name; those that every database allows are in the suite.
    fn vandalism(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// The case has passed: the database is not needed any more.
    async fn discard(&self) {}
}

fn no_sql() -> Error {
    Error::new(ErrorKind::Unsupported, "this store has no SQL").next_step("use its own commands")
}
