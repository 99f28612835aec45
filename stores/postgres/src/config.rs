//! How to connect to the database, and the names of its tables.

use std::fmt;
use std::time::Duration;

use sendoff::emit::Names;

/// Settings of a [`crate::PostgresStore`].
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresConfig {
    /// The address of the database: a URL or a list of `key=value`, in libpq's format.
    pub url: String,
    /// The names of the outbox's tables.
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
    /// Whether notifications (`LISTEN`) wake the relay. This needs a direct connection: disable it behind a pooler that
    /// gives out a connection per transaction. Polling finds all messages anyway.
    pub listen: bool,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one call may take. The client measures the time, so that a hanging server cannot block the relay.
    pub statement_timeout: Duration,
    /// The name of the connections in `pg_stat_activity`.
    pub application_name: String,
}

impl PostgresConfig {
    /// The default settings for the database at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            names: Names::default(),
            retention: None,
            dead_retention: None,
            dedup_window: None,
            inbox_retention: None,
            job_max_attempts: None,
            listen: true,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
            application_name: "sendoff".to_owned(),
        }
    }

    /// Sets the table names.
    #[must_use]
    pub fn names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Sets how long delivered messages are kept.
    #[must_use]
    pub fn retention(mut self, retention: Option<Duration>) -> Self {
        self.retention = retention;
        self
    }

    /// Sets how long dead letters are kept.
    #[must_use]
    pub fn dead_retention(mut self, retention: Option<Duration>) -> Self {
        self.dead_retention = retention;
        self
    }

    /// Sets how long idempotency keys are kept. The value is [written into the
    /// tables](sendoff::store::MigrateStore::write_retention), so it applies to all producers.
    #[must_use]
    pub fn dedup_window(mut self, window: Option<Duration>) -> Self {
        self.dedup_window = window;
        self
    }

    /// Sets how long inbox records are kept. The value is [written into the
    /// tables](sendoff::store::MigrateStore::write_retention).
    #[must_use]
    pub fn inbox_retention(mut self, window: Option<Duration>) -> Self {
        self.inbox_retention = window;
        self
    }

    /// Sets the default number of attempts of a job. The value is [written into the
    /// tables](sendoff::store::MigrateStore::write_retention).
    #[must_use]
    pub fn job_max_attempts(mut self, most: Option<u16>) -> Self {
        self.job_max_attempts = most;
        self
    }

    /// Sets whether notifications (`LISTEN`) wake the relay.
    #[must_use]
    pub fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// Sets the time limit for connecting.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the time limit for one call.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Sets the name of the connections in `pg_stat_activity`.
    #[must_use]
    pub fn application_name(mut self, name: impl Into<String>) -> Self {
        self.application_name = name.into();
        self
    }
}

/// Without the URL: it may hold a password.
impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("names", &self.names)
            .field("retention", &self.retention)
            .field("dead_retention", &self.dead_retention)
            .field("dedup_window", &self.dedup_window)
            .field("inbox_retention", &self.inbox_retention)
            .field("job_max_attempts", &self.job_max_attempts)
            .field("listen", &self.listen)
            .field("connect_timeout", &self.connect_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("application_name", &self.application_name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let config = PostgresConfig::new("postgres://shop:hunter2@localhost/shop");
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
