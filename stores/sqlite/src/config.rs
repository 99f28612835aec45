//! The path of the database, and the names of its tables.

use std::path::PathBuf;
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::{Error, ErrorKind, Result};

/// Settings of a [`crate::SqliteStore`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct SqliteConfig {
    /// The path of the database file. Only `sendoff migrate` creates the file, so that a mistyped path is an error.
    pub path: PathBuf,
    /// The names of the tables. SQLite has no schemas, so only the prefix can be set.
    pub names: Names,
    /// How long delivered messages are kept; `None`: they are deleted when they are delivered.
    pub retention: Option<Duration>,
    /// How long dead letters are kept; `None`: until an operator acts. Dead letters that block their key are never deleted.
    pub dead_retention: Option<Duration>,
    /// How long idempotency keys are kept; `None`: the setting in the tables, 7 days by default.
    pub dedup_window: Option<Duration>,
    /// How long inbox records are kept; `None`: the setting in the tables, 30 days by default.
    pub inbox_retention: Option<Duration>,
    /// The default number of attempts of a job; `None`: the setting in the tables, 5 by default.
    pub job_max_attempts: Option<u16>,
    /// How long to wait for another program's transaction, before the call fails with [`ErrorKind::Busy`].
    pub busy_timeout: Duration,
}

impl SqliteConfig {
    /// The default settings for the database in the file `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            names: Names::default(),
            retention: None,
            dead_retention: None,
            dedup_window: None,
            inbox_retention: None,
            job_max_attempts: None,
            busy_timeout: Duration::from_secs(5),
        }
    }

    /// Sets the table names.
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Sets how long delivered messages are kept.
    pub fn retention(mut self, retention: Option<Duration>) -> Self {
        self.retention = retention;
        self
    }

    /// Sets how long dead letters are kept.
    pub fn dead_retention(mut self, retention: Option<Duration>) -> Self {
        self.dead_retention = retention;
        self
    }

    /// Sets how long idempotency keys are kept. The value is [written into the
    /// tables](sendoff::store::MigrateStore::write_retention), so it applies to all producers.
    pub fn dedup_window(mut self, window: Option<Duration>) -> Self {
        self.dedup_window = window;
        self
    }

    /// Sets how long inbox records are kept. The value is [written into the
    /// tables](sendoff::store::MigrateStore::write_retention).
    pub fn inbox_retention(mut self, window: Option<Duration>) -> Self {
        self.inbox_retention = window;
        self
    }

    /// Sets the default number of attempts of a job. The value is [written into the
    /// tables](sendoff::store::MigrateStore::write_retention).
    pub fn job_max_attempts(mut self, most: Option<u16>) -> Self {
        self.job_max_attempts = most;
        self
    }

    /// Sets how long to wait for another program's transaction.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Some(schema) = self.names.schema() {
            return Err(
                Error::new(ErrorKind::Invalid, format!("the schema {schema:?} is not supported"))
                    .because("SQLite has no schemas")
                    .next_step("remove the schema; use table prefixes for several outboxes in one file"),
            );
        }
        if self.path.as_os_str().is_empty() || self.path.as_os_str() == ":memory:" {
            return Err(Error::new(ErrorKind::Invalid, "the outbox needs a database file")
                .because("the store has several connections, and each would have a separate in-memory database")
                .next_step("set the path of a file"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sqlite_has_not_is_refused_with_advice() {
        let with_schema = SqliteConfig::new("a.db").names(Names::new(Some("shop"), "outbox_").unwrap());
        for bad in [with_schema, SqliteConfig::new(""), SqliteConfig::new(":memory:")] {
            let error = bad.check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.next().is_some());
        }
        assert!(SqliteConfig::new("a.db").check().is_ok());
    }
}
