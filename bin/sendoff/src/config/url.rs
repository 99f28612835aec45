//! Database URLs, printed without their password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use sendoff::{Error, ErrorKind, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A database URL. Its password is left out when it is printed or serialised.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum DatabaseUrl {
    /// A URL or `key=value` list for PostgreSQL, with its password.
    Postgres(String),
    /// A URL for MySQL or MariaDB, with its password.
    Mysql(String),
    /// A file.
    Sqlite(PathBuf),
}

impl FromStr for DatabaseUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |what: String| {
            Err(Error::new(ErrorKind::Invalid, what)
                .because("supported databases are PostgreSQL, MySQL, MariaDB and SQLite files")
                .next_step(
                    "write the URL like postgres://user:password@host:5432/database, \
                     mysql://user:password@host:3306/database or sqlite:path/to/file.db",
                ))
        };
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        if text.starts_with("mysql://") || text.starts_with("mariadb://") {
            return Ok(Self::Mysql(text.to_owned()));
        }
        if let Some(rest) = text.strip_prefix("sqlite:") {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            return match path {
                "" => invalid("the SQLite URL has no file".to_owned()),
                ":memory:" => invalid("an outbox in memory would be lost when the program ends".to_owned()),
                path if path.contains('?') => invalid("the SQLite URL has options, which are not supported".to_owned()),
                path => Ok(Self::Sqlite(path.into())),
            };
        }
        // The rest of the text is not printed: it may contain a password.
        match text.split_once("://") {
            Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+') => {
                invalid(format!("{scheme}:// is not a supported database"))
            }
            None if text.contains("host=") || text.contains("dbname=") => Ok(Self::Postgres(text.to_owned())),
            Some(_) | None => invalid("the database URL cannot be read".to_owned()),
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(url) | Self::Mysql(url) => f.write_str(&without_password(url)),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DatabaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Removes too much rather than too little: a password may contain any character, percent-encoded or not.
fn without_password(url: &str) -> String {
    let mut shown = url.to_owned();
    if let Some((scheme, rest)) = url.split_once("://")
        && let Some((user, host)) = rest.rsplit_once('@')
    {
        let name = user.split(':').next().unwrap_or_default();
        let mark = if user.contains(':') { ":***" } else { "" };
        shown = format!("{scheme}://{name}{mark}@{host}");
    }
    if let Some(at) = shown.to_ascii_lowercase().find("password") {
        shown.truncate(at);
        shown.push_str("password=***");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        for (url, shown) in [
            (
                "postgres://shop:hunter2@db:5432/shop",
                "postgres://shop:***@db:5432/shop",
            ),
            ("postgresql://shop:hunter2/a@b@db/shop", "postgresql://shop:***@db/shop"),
            ("postgres://shop@db/shop", "postgres://shop@db/shop"),
            (
                "postgres:///shop?host=/run/pg&password=hunter2&user=x",
                "postgres:///shop?host=/run/pg&password=***",
            ),
            (
                "postgres://db/shop?sslmode=require",
                "postgres://db/shop?sslmode=require",
            ),
            (
                "host=db user=shop password='hunter2 x' dbname=shop",
                "host=db user=shop password=***",
            ),
            ("host=db PASSWORD = hunter2", "host=db password=***"),
        ] {
            let parsed: DatabaseUrl = url.parse().unwrap();
            assert_eq!(parsed.to_string(), shown);
            assert_eq!(format!("{parsed:?}"), shown);
            assert_eq!(parsed, DatabaseUrl::Postgres(url.to_owned()));
        }
    }

    #[test]
    fn mysql_and_mariadb_are_one() {
        for url in ["mysql://shop:hunter2@db:3306/shop", "mariadb://shop:hunter2@db/shop"] {
            let parsed: DatabaseUrl = url.parse().unwrap();
            assert!(parsed.to_string().contains("://shop:***@db"), "{parsed}");
            assert_eq!(parsed, DatabaseUrl::Mysql(url.to_owned()));
        }
    }

    #[test]
    fn sqlite_is_a_path() {
        for (url, path) in [
            ("sqlite:a.db", "a.db"),
            ("sqlite://a/b.db", "a/b.db"),
            ("sqlite:///var/a.db", "/var/a.db"),
            ("sqlite:/var/a.db", "/var/a.db"),
        ] {
            assert_eq!(url.parse::<DatabaseUrl>().unwrap(), DatabaseUrl::Sqlite(path.into()));
        }
    }

    #[test]
    fn other_texts_are_refused_without_being_quoted() {
        for (url, word) in [
            ("oracle://shop:hunter2@db/shop", "oracle://"),
            ("hunter2", "cannot be read"),
            ("shop:hunter2@db://", "cannot be read"),
            ("", "cannot be read"),
            ("sqlite:", "no file"),
            ("sqlite::memory:", "in memory"),
            ("sqlite:a.db?mode=ro", "options"),
        ] {
            let error = url.parse::<DatabaseUrl>().unwrap_err();
            assert!(error.to_string().contains(word) && error.next().is_some(), "{error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
