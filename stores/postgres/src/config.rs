//! How to connect to the database, and the names of its tables.

use std::fmt;
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::store::StoreSettings;

/// Settings of a [`crate::PostgresStore`].
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresConfig {
    /// The address of the database: a URL or a list of `key=value`, in libpq's format.
    pub url: String,
    /// The names of the outbox's tables.
    pub names: Names,
    /// What every store has: how long rows are kept, and the attempts of jobs.
    pub settings: StoreSettings,
    /// Whether to be woken by `LISTEN`. It takes a direct connection: switch it off behind a pooler that gives out a
    /// connection per transaction. Polling finds all messages anyway.
    pub listen: bool,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one call may take. The client measures the time, so that a hanging server cannot block the relay.
    pub statement_timeout: Duration,
    /// The name of the connections in `pg_stat_activity`.
    pub application_name: String,
}

sendoff::store_settings!(PostgresConfig, timeouts);

impl PostgresConfig {
    /// The default settings for the database at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            names: Names::default(),
            settings: StoreSettings::default(),
            listen: true,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
            application_name: "sendoff".to_owned(),
        }
    }

    /// Switches `LISTEN` on or off.
    #[must_use]
    pub fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// Sets the name in `pg_stat_activity`.
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
            .field("settings", &self.settings)
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
