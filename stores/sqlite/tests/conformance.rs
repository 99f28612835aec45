//! The conformance suite of stores, on SQLite.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sendoff::emit::Names;
use sendoff::store::MigrateStore;
use sendoff::{Error, ErrorKind, Result};
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
use sendoff_testkit::store_suite::{Capabilities, Database, Setup, StoreHarness, Subject, run};

fn main() -> ExitCode {
    run([("sqlite", SqliteHarness)])
}

/// Makes files.
struct SqliteHarness;

#[async_trait]
impl StoreHarness for SqliteHarness {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            sql: true,
            migrations: true,
            // SQLite has one writer at a time.
            concurrent_transactions: false,
            jobs: true,
            figures: true,
        }
    }

    async fn fresh(&self, setup: Setup) -> Result<Subject> {
        let folder = tempfile::tempdir().map_err(|error| {
            Error::new(ErrorKind::Unreachable, "no temporary folder")
                .because(error.to_string())
                .with_source(error)
        })?;
        // Not the usual names, which all other tests have.
        let names = Names::new(None, "shop_outbox_")?;
        let config = SqliteConfig::new(folder.path().join("outbox.db"))
            .names(names)
            .settings(setup.settings());
        let file = File {
            config: config.clone(),
            folder: Arc::new(folder),
        };
        if setup.migrated {
            SqliteStore::new(config)?.migrate().await?;
        }
        file.open().await
    }
}

/// One database file, gone with the last that uses it.
#[derive(Clone)]
struct File {
    config: SqliteConfig,
    folder: Arc<tempfile::TempDir>,
}

impl File {
    /// Does something on a connection of its own.
    async fn on_connection<T: Send + 'static>(
        &self,
        work: impl FnOnce(Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let path: PathBuf = self.folder.path().join("outbox.db");
        let done = tokio::task::spawn_blocking(move || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(5))?;
            work(connection)
        });
        let failed = |why: String| Error::new(ErrorKind::Backend, "SQL of the suite failed").because(why);
        match done.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(failed(error.to_string()).with_source(error)),
            Err(error) => Err(failed(error.to_string()).with_source(error)),
        }
    }
}

#[async_trait]
impl Database for File {
    async fn open(&self) -> Result<Subject> {
        Ok(Subject::with_jobs(SqliteStore::new(self.config.clone())?, self.clone()))
    }

    async fn execute(&self, sql: &str) -> Result<u64> {
        let sql = self.config.names.render(sql);
        let changed = self
            .on_connection(move |connection| connection.execute(&sql, []))
            .await?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    async fn run_script(&self, sql: &str) -> Result<()> {
        let sql = sql.to_owned();
        self.on_connection(move |connection| connection.execute_batch(&sql))
            .await
    }

    async fn fetch(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        let sql = self.config.names.render(sql);
        let work = move |connection: Connection| {
            let mut statement = connection.prepare(&sql)?;
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| {
                (0..columns).map(|column| row.get_ref(column).map(text)).collect()
            })?;
            rows.collect()
        };
        self.on_connection(work).await
    }

    async fn set_back(&self) -> Result<()> {
        self.execute("DELETE FROM outbox_message").await?;
        self.execute("DELETE FROM sqlite_sequence WHERE name = 'outbox_message'")
            .await?;
        Ok(())
    }

    fn vandalism(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            (
                "a number for a payload",
                "UPDATE outbox_message SET payload = 7 WHERE topic = 'vandalised'",
            ),
            (
                "a fraction for a payload",
                "UPDATE outbox_message SET payload = 1.5 WHERE topic = 'vandalised'",
            ),
            (
                "a word for an id",
                "UPDATE outbox_message SET id = 'four' WHERE topic = 'vandalised'",
            ),
            (
                "no text in a key",
                "UPDATE outbox_message SET key = CAST(x'ff' AS TEXT) WHERE topic = 'vandalised'",
            ),
            (
                "no JSON in headers",
                "UPDATE outbox_message SET headers = '{' WHERE topic = 'vandalised'",
            ),
            (
                "a huge priority",
                "UPDATE outbox_message SET priority = 1 << 40 WHERE topic = 'vandalised'",
            ),
            (
                "a limit below one",
                "UPDATE outbox_message SET max_attempts = -1 WHERE topic = 'vandalised'",
            ),
            (
                "a huge version",
                "UPDATE outbox_message SET schema_version = 1 << 40 WHERE topic = 'vandalised'",
            ),
        ]
    }
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}
