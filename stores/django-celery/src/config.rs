//! The settings for the connection to the database.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The database of django-celery-outbox's tables.
#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    /// PostgreSQL, as a URL or a list of `key=value`. The search path must lead to the tables.
    Postgres(String),
    /// MySQL 8.0.1 or MariaDB 10.6, or later, as a URL.
    Mysql(String),
    /// SQLite, as the path of the database file.
    Sqlite(PathBuf),
}

/// Without what may hold a password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(_) => f.write_str("Postgres"),
            Self::Mysql(_) => f.write_str("Mysql"),
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
        }
    }
}

/// Settings of a [`crate::DjangoOutbox`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DjangoConfig {
    /// The database with the tables.
    pub database: Database,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one call may take, and how long to wait for SQLite's write lock.
    pub statement_timeout: Duration,
    /// The `time_zone` of Django's sessions on MySQL and MariaDB, if it is not the server's. Times in the tables are in
    /// this time zone.
    pub mysql_time_zone: Option<String>,
}

impl DjangoConfig {
    /// The settings for this database; all other settings have their defaults.
    pub fn new(database: Database) -> Self {
        Self {
            database,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
            mysql_time_zone: None,
        }
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

    /// Sets the time zone of Django's sessions on MySQL and MariaDB.
    #[must_use]
    pub fn mysql_time_zone(mut self, zone: Option<String>) -> Self {
        self.mysql_time_zone = zone;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for database in [
            Database::Postgres("postgres://shop:hunter2@a/b".into()),
            Database::Mysql("mysql://shop:hunter2@a/b".into()),
        ] {
            assert!(!format!("{:?}", DjangoConfig::new(database)).contains("hunter2"));
        }
    }
}
