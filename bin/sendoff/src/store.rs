//! The stores: the only place that knows them all.

use std::path::Path;
use std::sync::Arc;

use sendoff::Result;
use sendoff::store::{EmitStore, MigrateStore, OperateStore, RelayStore, WorkStore};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_store_postgres::PostgresStore;
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};

use crate::config::{Database, DatabaseUrl};

/// A store, by its rooms.
pub(crate) struct Store {
    pub(crate) relay: Arc<dyn RelayStore>,
    pub(crate) operate: Arc<dyn OperateStore>,
    pub(crate) migrate: Arc<dyn MigrateStore>,
    pub(crate) work: Arc<dyn WorkStore>,
    pub(crate) emit: Arc<dyn EmitStore>,
    /// SQL that creates roles, where the database has such.
    pub(crate) roles: Option<String>,
}

impl Store {
    /// The store that is configured. Nothing is asked of the database yet.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when no database is configured, or its settings cannot be used.
    pub(crate) fn open(database: &Database) -> Result<Self> {
        let names = database.names()?;
        match database.url()? {
            DatabaseUrl::Postgres(url) => {
                let config = sendoff_store_postgres::PostgresConfig::new(url)
                    .names(names)
                    .retention(database.retention)
                    .dead_retention(database.dead_retention)
                    .dedup_window(database.dedup_window)
                    .inbox_window(database.inbox_window)
                    .listen(database.listen);
                let store = PostgresStore::new(config)?;
                let roles = Some(store.roles_sql());
                Ok(Self::of(store, roles))
            }
            DatabaseUrl::Mysql(url) => {
                let config = MysqlConfig::new(url)
                    .names(names)
                    .retention(database.retention)
                    .dead_retention(database.dead_retention)
                    .dedup_window(database.dedup_window)
                    .inbox_window(database.inbox_window);
                Ok(Self::of(MysqlStore::new(config)?, None))
            }
            DatabaseUrl::Sqlite(path) => {
                let mut config = SqliteConfig::new(path).names(names);
                config.retention = database.retention;
                config.dead_retention = database.dead_retention;
                config.dedup_window = database.dedup_window;
                config.inbox_window = database.inbox_window;
                Ok(Self::of(SqliteStore::open(config)?, None))
            }
        }
    }

    /// A SQLite file with everything else as usual.
    pub(crate) fn sqlite(path: &Path) -> Result<Self> {
        Ok(Self::of(SqliteStore::open(SqliteConfig::new(path))?, None))
    }

    /// What a relay does before it begins: are the tables what it needs, and do they have the windows of the config?
    ///
    /// # Errors
    /// What [`MigrateStore::check_schema`] and [`MigrateStore::write_windows`] say.
    pub(crate) async fn prepare(&self) -> Result<()> {
        self.migrate.check_schema().await?;
        if self.migrate.write_windows().await? {
            tracing::info!(
                event = "windows_written",
                "the tables have the windows of the configuration now"
            );
        }
        Ok(())
    }

    fn of<S>(store: S, roles: Option<String>) -> Self
    where
        S: RelayStore + OperateStore + MigrateStore + EmitStore + WorkStore + 'static,
    {
        let store = Arc::new(store);
        Self {
            relay: store.clone(),
            operate: store.clone(),
            migrate: store.clone(),
            work: store.clone(),
            emit: store,
            roles,
        }
    }
}
