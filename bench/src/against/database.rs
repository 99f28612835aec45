//! A database for one measurement.

use anyhow::{Context, Result};
use tokio_postgres::Client;

use crate::subject;

const NAME: &str = "bench_against";

/// An empty database on the server of the run.
pub(super) struct Database {
    server: Client,
    url: String,
}

impl Database {
    /// Creates it again. A checkpoint first writes to disk what earlier measurements left in the server's memory.
    pub(super) async fn create() -> Result<Self> {
        let database = Self {
            server: subject::connect().await?,
            url: with_database(&subject::url()?, NAME)?,
        };
        database.remove().await?;
        for sql in [&format!("CREATE DATABASE {NAME}"), "CHECKPOINT"] {
            database.server.batch_execute(sql).await?;
        }
        Ok(database)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Drops it, so that the server has nothing to clean up in it during the next measurement.
    pub(super) async fn drop(self) -> Result<()> {
        self.remove().await
    }

    async fn remove(&self) -> Result<()> {
        let sql = format!("DROP DATABASE IF EXISTS {NAME} WITH (FORCE)");
        Ok(self.server.batch_execute(&sql).await?)
    }
}

/// The same server, another database.
fn with_database(url: &str, name: &str) -> Result<String> {
    let (address, parameters) = match url.split_once('?') {
        Some((address, parameters)) => (address, format!("?{parameters}")),
        None => (url, String::new()),
    };
    let (server, _) = address
        .rsplit_once('/')
        .filter(|(server, _)| !server.ends_with('/'))
        .context("SENDOFF_TEST_POSTGRES_URL names no database: run `cargo xtask bench GROUP`")?;
    Ok(format!("{server}/{name}{parameters}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_the_database_changes() {
        let changed = |url| with_database(url, "other").unwrap();
        assert_eq!(
            changed("postgres://postgres@127.0.0.1:4242/postgres"),
            "postgres://postgres@127.0.0.1:4242/other"
        );
        assert_eq!(
            changed("postgres://h/db?options=-c%20a=/b"),
            "postgres://h/other?options=-c%20a=/b"
        );
    }

    #[test]
    fn url_without_a_database_is_refused() {
        assert!(with_database("postgres://127.0.0.1", "other").is_err());
    }
}
