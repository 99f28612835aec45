//! How to reach the database.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Which database the tables are in.
#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    /// PostgreSQL, by URL or list of `key=value`. The tables are where its search path leads.
    Postgres(String),
    /// MySQL 8.0.1 or MariaDB 10.6, or later, by URL.
    Mysql(String),
    /// A SQLite file.
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

/// The settings of a [`crate::DjangoOutbox`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DjangoConfig {
    /// The database.
    pub database: Database,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one call may take, and how long SQLite's write lock is waited for.
    pub statement_timeout: Duration,
    /// The `time_zone` of Django's sessions on MySQL and MariaDB, where it is not the server's: stamps are written in it.
    pub mysql_time_zone: Option<String>,
}

impl DjangoConfig {
    /// The usual settings.
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

    /// The time zone of Django's sessions on MySQL and MariaDB.
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
