//! `[database]`: where the outbox is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::store::StoreSettings;
use sendoff::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::{DatabaseUrl, duration};

/// Where the outbox is, and how long it keeps rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Database {
    /// The URL, if it is in the configuration itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<DatabaseUrl>,
    /// The variable that holds the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    url_env: Option<String>,
    /// The file that holds the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    url_file: Option<PathBuf>,
    /// The resolved URL.
    #[serde(skip)]
    found: Option<DatabaseUrl>,
    /// The schema of the tables; `None`: the connection's search path decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    /// The prefix of the table names.
    table_prefix: String,
    /// How long delivered messages are kept; `None`: they are not kept.
    #[serde(with = "duration::or_off")]
    pub(crate) retention: Option<Duration>,
    /// How long dead letters are kept; `None`: until an operator acts.
    #[serde(with = "duration::or_off")]
    pub(crate) dead_retention: Option<Duration>,
    /// How long idempotency keys are taken; `None`: the value in the tables.
    #[serde(with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub(crate) dedup_window: Option<Duration>,
    /// How long inbox records are kept; `None`: the value in the tables.
    #[serde(with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub(crate) inbox_retention: Option<Duration>,
    /// How often a job is tried that has no limit of its own; `None`: the value in the tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_max_attempts: Option<u16>,
    /// Whether `LISTEN` wakes the relay, if the database has it.
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
            inbox_retention: None,
            job_max_attempts: None,
            listen: true,
        }
    }
}

impl Database {
    /// The settings that name the database. One of them from the environment or a flag replaces all of them in the
    /// file.
    pub(super) const URL_KEYS: [&'static str; 3] = ["url", "url_env", "url_file"];

    /// What every store has.
    pub(crate) fn settings(&self) -> StoreSettings {
        StoreSettings {
            retention: self.retention,
            dead_retention: self.dead_retention,
            dedup_window: self.dedup_window,
            inbox_retention: self.inbox_retention,
            job_max_attempts: self.job_max_attempts,
        }
    }

    /// Where the database is.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when no URL is configured.
    pub(crate) fn url(&self) -> Result<&DatabaseUrl> {
        self.found.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "no database is configured")
                .because("there is no `url` in [database], no SENDOFF_DATABASE__URL and no --database")
                .next_step(
                    "set `url` in [database] of sendoff.toml (`sendoff init` writes one), or set SENDOFF_DATABASE__URL",
                )
        })
    }

    /// The names of the tables.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a name is not allowed in SQL. A loaded configuration has passed this check.
    pub(crate) fn names(&self) -> Result<Names> {
        Names::new(self.schema.as_deref(), &self.table_prefix)
    }

    /// Resolves `url_env` and `url_file`, and checks the rest. An error comes with the name of its setting.
    pub(super) fn resolve(&mut self, env: &BTreeMap<OsString, OsString>) -> Result<(), (&'static str, Error)> {
        let given = [self.url.is_some(), self.url_env.is_some(), self.url_file.is_some()];
        if given.into_iter().filter(|given| *given).count() > 1 {
            let error = Error::new(ErrorKind::Invalid, "the database is set more than once")
                .because("url, url_env and url_file each set the database")
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
        if self.job_max_attempts == Some(0) {
            let error = Error::new(ErrorKind::Invalid, "job_max_attempts is 0")
                .because("a job without attempts would never run")
                .next_step("use 1 or more");
            return Err(("job_max_attempts", error));
        }
        for (key, window) in [
            ("dedup_window", self.dedup_window),
            ("inbox_retention", self.inbox_retention),
        ] {
            if window.is_some_and(|window| window < Duration::from_secs(1)) {
                let error = Error::new(ErrorKind::Invalid, format!("{key} is too short"))
                    .because("the tables store this setting in whole seconds")
                    .next_step("use 1s or more");
                return Err((key, error));
            }
        }
        if let (Some(DatabaseUrl::Sqlite(_)), Some(_)) = (&self.found, &self.schema) {
            let error = Error::new(ErrorKind::Invalid, "schema is not allowed with SQLite")
                .because("SQLite has no schemas")
                .next_step("remove the setting");
            return Err(("schema", error));
        }
        Ok(())
    }
}

fn from_env(name: &str, env: &BTreeMap<OsString, OsString>) -> Result<DatabaseUrl> {
    let Some(value) = env.get(&OsString::from(name)).filter(|value| !value.is_empty()) else {
        return Err(
            Error::new(ErrorKind::Invalid, format!("the variable {name} is not set"))
                .because("url_env names this variable as the source of the URL")
                .next_step(format!("start the program with {name}=postgres://…, or change url_env")),
        );
    };
    let Some(text) = value.to_str() else {
        return Err(
            Error::new(ErrorKind::Invalid, format!("the variable {name} is not UTF-8"))
                .because("a URL is text")
                .next_step("percent-encode special characters in the URL"),
        );
    };
    text.trim().parse()
}

fn from_file(path: &Path) -> Result<DatabaseUrl> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("cannot read {}", path.display()))
            .because(error.to_string())
            .next_step("let the relay's user read it, or change url_file")
            .with_source(error)
    })?;
    text.trim().parse()
}
