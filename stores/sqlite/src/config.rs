//! What a SQLite store has to know.

use std::path::PathBuf;
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::{Error, ErrorKind, Result};

/// Where the outbox is and how to treat it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct SqliteConfig {
    /// The database file. `sendoff migrate` creates it; nothing else does, so that a mistyped path is found out.
    pub path: PathBuf,
    /// What the tables are called. SQLite has no schemas, so only the prefix may be set.
    pub names: Names,
    /// How long delivered messages are kept; `None`: not at all.
    pub retention: Option<Duration>,
    /// How long dead letters are kept; `None`: until an operator acts. Those that block their key always are.
    pub dead_retention: Option<Duration>,
    /// How long idempotency keys are remembered; `None`: as long as the settings in the tables say, 7 days at first.
    pub dedup_window: Option<Duration>,
    /// How long notes of consumers are remembered; `None`: as long as the settings in the tables say, 30 days at first.
    pub inbox_window: Option<Duration>,
    /// How long to wait for another program's transaction before giving up with [`ErrorKind::Busy`].
    pub busy_timeout: Duration,
}

impl SqliteConfig {
    /// The outbox in this file, with the usual names, keeping nothing that was delivered.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            names: Names::default(),
            retention: None,
            dead_retention: None,
            dedup_window: None,
            inbox_window: None,
            busy_timeout: Duration::from_secs(5),
        }
    }

    /// Other table names than `outbox_…`.
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Keeps delivered messages for so long.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Keeps dead letters for so long.
    pub fn dead_retention(mut self, retention: Duration) -> Self {
        self.dead_retention = Some(retention);
        self
    }

    /// Remembers idempotency keys for so long. [Written into the tables](sendoff::store::MigrateStore::write_windows), it
    /// counts for all producers.
    pub fn dedup_window(mut self, window: Duration) -> Self {
        self.dedup_window = Some(window);
        self
    }

    /// Remembers notes of consumers for so long, in the same way.
    pub fn inbox_window(mut self, window: Duration) -> Self {
        self.inbox_window = Some(window);
        self
    }

    /// Waits so long for another program's transaction.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Some(schema) = self.names.schema() {
            return Err(
                Error::new(ErrorKind::Invalid, format!("the schema {schema:?} cannot be used"))
                    .because("SQLite has no schemas")
                    .next_step("leave it out, and tell several outboxes in one file apart by their table prefix"),
            );
        }
        if self.path.as_os_str().is_empty() || self.path.as_os_str() == ":memory:" {
            return Err(Error::new(ErrorKind::Invalid, "the outbox needs a database file")
                .because("the store has several connections, and each would see a memory of its own")
                .next_step("give the path of a file"));
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
