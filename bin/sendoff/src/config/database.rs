//! `[database]`: where the outbox is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::{DatabaseUrl, duration};

/// Where the outbox is, and what is kept there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Database {
    /// The URL, where it is written in the configuration itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<DatabaseUrl>,
    /// The variable that holds the URL, instead of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    url_env: Option<String>,
    /// The file that holds the URL, instead of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    url_file: Option<PathBuf>,
    /// The URL, from wherever it comes.
    #[serde(skip)]
    found: Option<DatabaseUrl>,
    /// The schema of the tables; none: where the connection's search path leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    /// What the tables' names start with.
    table_prefix: String,
    /// How long delivered messages are kept; `None`: not at all.
    #[serde(with = "duration::or_off")]
    pub(crate) retention: Option<Duration>,
    /// How long dead letters are kept; `None`: until an operator acts.
    #[serde(with = "duration::or_off")]
    pub(crate) dead_retention: Option<Duration>,
    /// How long idempotency keys are remembered; `None`: as the tables have it.
    #[serde(with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub(crate) dedup_window: Option<Duration>,
    /// How long notes of consumers are remembered; `None`: as the tables have it.
    #[serde(with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub(crate) inbox_window: Option<Duration>,
    /// Whether to be woken by `LISTEN`, where the database has it.
    pub(crate) listen: bool,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: None,
            url_env: None,
            url_file: None,
            found: None,
            schema: None,
            table_prefix: Names::PREFIX.to_owned(),
            retention: None,
            dead_retention: None,
            dedup_window: None,
            inbox_window: None,
            listen: true,
        }
    }
}

impl Database {
    /// The settings that name the database: setting one in a higher place takes the others of a lower one away.
    pub(super) const URL_KEYS: [&'static str; 3] = ["url", "url_env", "url_file"];

    /// Where the database is.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when nothing says so.
    pub(crate) fn url(&self) -> Result<&DatabaseUrl> {
        self.found.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "no database is configured")
                .because("neither the configuration file nor the environment names one")
                .next_step(
                    "set url in [database] of sendoff.toml (`sendoff init` writes one), or SENDOFF_DATABASE__URL",
                )
        })
    }

    /// What the tables are called.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a name cannot stand in SQL. A loaded configuration has been checked for it.
    pub(crate) fn names(&self) -> Result<Names> {
        Names::new(self.schema.as_deref(), &self.table_prefix)
    }

    /// Follows `url_env` and `url_file`, and checks the rest. An error comes with the setting that it is about.
    pub(super) fn resolve(&mut self, env: &BTreeMap<OsString, OsString>) -> Result<(), (&'static str, Error)> {
        let given = [self.url.is_some(), self.url_env.is_some(), self.url_file.is_some()];
        if given.into_iter().filter(|given| *given).count() > 1 {
            let error = Error::new(ErrorKind::Invalid, "the database is named more than once")
                .because("url, url_env and url_file each name it")
                .next_step("keep one of url, url_env and url_file");
            return Err(("url", error));
        }
        self.found.clone_from(&self.url);
        if let Some(name) = &self.url_env {
            self.found = Some(from_env(name, env).map_err(|error| ("url_env", error))?);
        }
        if let Some(path) = &self.url_file {
            self.found = Some(from_file(path).map_err(|error| ("url_file", error))?);
        }
        self.names().map_err(|error| {
            let key = if self.schema.is_some() {
                "schema"
            } else {
                "table_prefix"
            };
            (key, error)
        })?;
        for (key, window) in [("dedup_window", self.dedup_window), ("inbox_window", self.inbox_window)] {
            if window.is_some_and(|window| window < Duration::from_secs(1)) {
                let error = Error::new(ErrorKind::Invalid, format!("{key} is too short"))
                    .because("the tables keep it in whole seconds")
                    .next_step("use 1s or more");
                return Err((key, error));
            }
        }
        if let (Some(DatabaseUrl::Sqlite(_)), Some(_)) = (&self.found, &self.schema) {
            let error = Error::new(ErrorKind::Invalid, "schema has no meaning for SQLite")
                .because("SQLite has no schemas")
                .next_step("take it out");
            return Err(("schema", error));
        }
        Ok(())
    }
}

fn from_env(name: &str, env: &BTreeMap<OsString, OsString>) -> Result<DatabaseUrl> {
    let Some(value) = env.get(&OsString::from(name)).filter(|value| !value.is_empty()) else {
        return Err(
            Error::new(ErrorKind::Invalid, format!("the variable {name} is not set"))
                .because("url_env says that it holds the URL")
                .next_step(format!("start the program with {name}=postgres://…, or change url_env")),
        );
    };
    let Some(text) = value.to_str() else {
        return Err(
            Error::new(ErrorKind::Invalid, format!("the variable {name} is not UTF-8"))
                .because("a URL is text")
                .next_step("percent-encode what is special in the URL"),
        );
    };
    text.trim().parse()
}

fn from_file(path: &Path) -> Result<DatabaseUrl> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("{} cannot be read", path.display()))
            .because(error.to_string())
            .next_step("let the relay's user read it, or change url_file")
            .with_source(error)
    })?;
    text.trim().parse()
}
