//! How to connect to the database, and the names of its tables.

use std::fmt;
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::store::StoreSettings;

/// Settings of a [`crate::MysqlStore`].
#[derive(Clone)]
#[non_exhaustive]
pub struct MysqlConfig {
    /// The URL of the database: `mysql://user:password@host:3306/database`, or `mariadb://…`.
    pub url: String,
    /// The names of the outbox's tables. The schema is a MySQL database.
    pub names: Names,
    /// What every store has: how long rows are kept, and the attempts of jobs.
    pub settings: StoreSettings,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one call may take. The client measures the time, so that a hanging server cannot block the relay.
    pub statement_timeout: Duration,
}

sendoff::store_settings!(MysqlConfig, timeouts);

impl MysqlConfig {
    /// The default settings for the database at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            names: Names::default(),
            settings: StoreSettings::default(),
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
        }
    }
}

/// Without the URL: it may hold a password.
impl fmt::Debug for MysqlConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlConfig")
            .field("names", &self.names)
            .field("settings", &self.settings)
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
