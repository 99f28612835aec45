//! The stores. Only this module knows all of them.

use std::path::Path;
use std::sync::Arc;

use sendoff::Result;
use sendoff::store::{EmitStore, MigrateStore, OperateStore, RelayStore, WorkStore};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_store_postgres::PostgresStore;
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};

use crate::config::{Database, DatabaseUrl};

/// A store, by its traits.
pub(crate) struct Store {
    pub(crate) relay: Arc<dyn RelayStore>,
    pub(crate) operate: Arc<dyn OperateStore>,
    pub(crate) migrate: Arc<dyn MigrateStore>,
    pub(crate) work: Arc<dyn WorkStore>,
    pub(crate) emit: Arc<dyn EmitStore>,
    /// The store that can create roles, for databases that have roles.
    pub(crate) roles: Option<PostgresStore>,
}

impl Store {
    /// The configured store. The database is not queried yet.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] when no database is configured, or its settings are invalid.
    pub(crate) fn open(database: &Database) -> Result<Self> {
        let (names, settings) = (database.names()?, database.settings());
        match database.url()? {
            DatabaseUrl::Postgres(url) => {
                let config = sendoff_store_postgres::PostgresConfig::new(url)
                    .names(names)
                    .settings(settings)
                    .listen(database.listen);
                let store = PostgresStore::new(config)?;
                let roles = Some(store.clone());
                Ok(Self::of(store, roles))
            }
            DatabaseUrl::Mysql(url) => {
                let config = MysqlConfig::new(url).names(names).settings(settings);
                Ok(Self::of(MysqlStore::new(config)?, None))
            }
            DatabaseUrl::Sqlite(path) => {
                let config = SqliteConfig::new(path).names(names).settings(settings);
                Ok(Self::of(SqliteStore::new(config)?, None))
            }
        }
    }

    /// A store in a SQLite file, with default settings.
    pub(crate) fn sqlite(path: &Path) -> Result<Self> {
        Ok(Self::of(SqliteStore::new(SqliteConfig::new(path))?, None))
    }

    /// Prepares a start of the relay: checks the schema and writes the configured retention into the tables.
    ///
    /// # Errors
    /// The errors of [`MigrateStore::check_schema`] and [`MigrateStore::write_retention`].
    pub(crate) async fn prepare(&self) -> Result<()> {
        self.migrate.check_schema().await?;
        if self.migrate.write_retention().await? {
            tracing::info!(
                event = "retention_written",
                "the configured deduplication window, inbox retention and job attempts were written into the tables"
            );
        }
        Ok(())
    }

    fn of<S>(store: S, roles: Option<PostgresStore>) -> Self
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
