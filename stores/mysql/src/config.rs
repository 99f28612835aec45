//! How to reach the database, and what its tables are called.

use std::fmt;
use std::time::Duration;

use sendoff::emit::Names;

/// The settings of a [`crate::MysqlStore`].
#[derive(Clone)]
#[non_exhaustive]
pub struct MysqlConfig {
    /// Where the database is: `mysql://user:password@host:3306/database`, or `mariadb://…`.
    pub url: String,
    /// Where the outbox's tables are. The schema is what MySQL calls a database.
    pub names: Names,
    /// How long delivered messages are kept; `None`: they are deleted once they are delivered.
    pub retention: Option<Duration>,
    /// How long dead letters are kept; `None`: until an operator acts. Those that block their key always are.
    pub dead_retention: Option<Duration>,
    /// How long idempotency keys are remembered; `None`: as long as the settings in the tables say, 7 days at first.
    pub dedup_window: Option<Duration>,
    /// How long notes of consumers are remembered; `None`: as long as the settings in the tables say, 30 days at first.
    pub inbox_window: Option<Duration>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one call may take. It is measured here, not by the server: a server that hangs cannot hang the relay.
    pub statement_timeout: Duration,
}

impl MysqlConfig {
    /// The default settings for the database at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            names: Names::default(),
            retention: None,
            dead_retention: None,
            dedup_window: None,
            inbox_window: None,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
        }
    }

    /// Other table names.
    #[must_use]
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Keeps delivered messages this long.
    #[must_use]
    pub fn retention(mut self, retention: Option<Duration>) -> Self {
        self.retention = retention;
        self
    }

    /// Keeps dead letters this long.
    #[must_use]
    pub fn dead_retention(mut self, retention: Option<Duration>) -> Self {
        self.dead_retention = retention;
        self
    }

    /// Remembers idempotency keys this long. [Written into the tables](sendoff::store::MigrateStore::write_windows), it
    /// counts for all producers.
    #[must_use]
    pub fn dedup_window(mut self, window: Option<Duration>) -> Self {
        self.dedup_window = window;
        self
    }

    /// Remembers notes of consumers this long, in the same way.
    #[must_use]
    pub fn inbox_window(mut self, window: Option<Duration>) -> Self {
        self.inbox_window = window;
        self
    }

    /// Another limit for connecting.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Another limit for one call.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }
}

/// Without the URL: it may hold a password.
impl fmt::Debug for MysqlConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlConfig")
            .field("names", &self.names)
            .field("retention", &self.retention)
            .field("dead_retention", &self.dead_retention)
            .field("dedup_window", &self.dedup_window)
            .field("inbox_window", &self.inbox_window)
            .field("connect_timeout", &self.connect_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let config = MysqlConfig::new("mysql://shop:hunter2@localhost/shop");
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
