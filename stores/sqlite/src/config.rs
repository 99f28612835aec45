//! The path of the database, and the names of its tables.

use std::path::PathBuf;
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::store::StoreSettings;
use sendoff::{Error, ErrorKind, Result};

/// Settings of a [`crate::SqliteStore`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteConfig {
    /// The path of the database file. Only `sendoff migrate` creates the file, so that a mistyped path is an error.
    pub path: PathBuf,
    /// The names of the tables. SQLite has no schemas, so only the prefix can be set.
    pub names: Names,
    /// What every store has: how long rows are kept, and the attempts of jobs.
    pub settings: StoreSettings,
    /// How long to wait for another program's transaction before giving up with [`ErrorKind::Busy`].
    pub busy_timeout: Duration,
}

sendoff::store_settings!(SqliteConfig);

impl SqliteConfig {
    /// The default settings for the database in the file `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            names: Names::default(),
            settings: StoreSettings::default(),
            busy_timeout: Duration::from_secs(5),
        }
    }

    /// Sets the time limit for another program's transaction.
    #[must_use]
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
