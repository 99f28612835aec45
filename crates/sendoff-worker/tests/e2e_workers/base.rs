//! The databases, and what their rows say in the end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use sendoff::emit::Names;
use sendoff::store::{MigrateStore, WorkStore};
use sendoff::{Result, Uuid};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
use tempfile::TempDir;

/// Completed jobs are kept, so that they can tell which hand-out finished them.
const RETENTION: Option<Duration> = Some(Duration::from_secs(86_400));

/// A database of a test's own.
pub(crate) struct Base {
    /// As [`open`] takes it.
    pub(crate) url: String,
    pub(crate) schema: String,
    /// For journals, and for the file of SQLite.
    pub(crate) folder: TempDir,
}

/// A row of the jobs' table, as far as it matters here.
pub(crate) struct Row {
    pub(crate) seq: i64,
    /// The number of its last hand-out.
    pub(crate) claim: i64,
    /// How often it was handed out.
    pub(crate) attempts: i64,
    pub(crate) state: String,
}

impl Base {
    pub(crate) fn postgres() -> Self {
        Self::at(variable("SENDOFF_TEST_POSTGRES_URL"))
    }

    pub(crate) fn mysql() -> Self {
        Self::at(variable("SENDOFF_TEST_MYSQL_URL"))
    }

    pub(crate) fn sqlite() -> Self {
        let mut base = Self::at(String::new());
        base.url = format!("sqlite:{}", base.folder.path().join("outbox.db").display());
        base
    }

    fn at(url: String) -> Self {
        Self {
            url,
            schema: format!("w_{}", &Uuid::new_v4().simple().to_string()[..20]),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Creates the tables.
    pub(crate) async fn migrate(&self) -> Arc<dyn WorkStore> {
        if self.url.starts_with("mysql:") {
            self.mysql_connection()
                .await
                .query_drop(format!("CREATE DATABASE {}", self.schema))
                .await
                .unwrap();
        }
        let store = open(&self.url, &self.schema).unwrap();
        store.migrate.migrate().await.unwrap();
        store.work
    }

    /// What is in the table now.
    pub(crate) async fn rows(&self) -> Vec<Row> {
        if self.url.starts_with("sqlite:") {
            let file = rusqlite::Connection::open(path(&self.url)).unwrap();
            let mut statement = file
                .prepare("SELECT seq, claim, attempts, state FROM outbox_job")
                .unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
            return rows.unwrap().map(|row| Row::of(row.unwrap())).collect();
        }
        let number = if self.url.starts_with("mysql:") {
            "SIGNED"
        } else {
            "bigint"
        };
        let sql = format!(
            "SELECT seq, claim, CAST(attempts AS {number}) AS attempts, state FROM {}.outbox_job",
            self.schema
        );
        if self.url.starts_with("mysql:") {
            let rows: Vec<(i64, i64, i64, String)> = self.mysql_connection().await.query(sql).await.unwrap();
            return rows.into_iter().map(Row::of).collect();
        }
        let (client, connection) = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let rows = client.query(&sql, &[]).await.unwrap();
        rows.iter()
            .map(|row| Row::of((row.get(0), row.get(1), row.get(2), row.get(3))))
            .collect()
    }

    async fn mysql_connection(&self) -> mysql_async::Conn {
        mysql_async::Conn::from_url(&self.url).await.unwrap()
    }
}

impl Row {
    fn of((seq, claim, attempts, state): (i64, i64, i64, String)) -> Self {
        Self {
            seq,
            claim,
            attempts,
            state,
        }
    }
}

/// A store, by the rooms that matter here.
pub(crate) struct Opened {
    pub(crate) work: Arc<dyn WorkStore>,
    pub(crate) migrate: Arc<dyn MigrateStore>,
}

/// A store with connections of its own.
pub(crate) fn open(url: &str, schema: &str) -> Result<Opened> {
    fn rooms<S: WorkStore + MigrateStore>(store: S) -> Opened {
        let store = Arc::new(store);
        Opened {
            work: store.clone(),
            migrate: store,
        }
    }
    if url.starts_with("sqlite:") {
        let config = SqliteConfig::new(path(url)).retention(RETENTION);
        return Ok(rooms(SqliteStore::new(config)?));
    }
    let names = Names::new(Some(schema), Names::PREFIX)?;
    if url.starts_with("mysql:") {
        let config = MysqlConfig::new(url).names(names).retention(RETENTION);
        return Ok(rooms(MysqlStore::new(config)?));
    }
    let config = PostgresConfig::new(url).names(names).retention(RETENTION);
    Ok(rooms(PostgresStore::new(config)?))
}

fn path(url: &str) -> PathBuf {
    url.trim_start_matches("sqlite:").into()
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run the tests with `cargo xtask test`"))
}
