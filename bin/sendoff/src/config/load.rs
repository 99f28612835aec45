//! Loads the configuration.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use sendoff::Result;

use super::document::Document;
use super::file::ConfigFile;
use super::{Config, environment, validate};

/// One setting from outside the file. It has no `Debug`: its value may be a URL with a password.
#[derive(Clone)]
pub(crate) struct Override {
    /// Where it comes from, for errors.
    pub(super) origin: String,
    /// The path of the setting, such as `database.url`.
    pub(super) path: String,
    /// Its value: text, or a TOML number, boolean or list.
    pub(super) value: String,
}

impl Override {
    /// A flag of the command line: `Override::flag("--batch", "relay.batch", "500")`.
    pub(crate) fn flag(flag: &str, path: &str, value: impl Into<String>) -> Self {
        Self {
            origin: format!("the flag {flag}"),
            path: path.to_owned(),
            value: value.into(),
        }
    }
}

impl Config {
    /// The configuration from the file at `path` (without a path: `sendoff.toml` in the current folder, if it exists),
    /// from `env`, and from `flags`.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`], with the position, for unreadable or invalid settings. Commands that need a
    /// database, a sink or a route check for it themselves.
    pub(crate) fn load(
        path: Option<&Path>,
        env: impl IntoIterator<Item = (OsString, OsString)>,
        flags: &[Override],
    ) -> Result<Self> {
        let env: BTreeMap<OsString, OsString> = env.into_iter().collect();
        let file = ConfigFile::read(path)?;
        let mut settings = environment::settings(&env)?;
        settings.extend_from_slice(flags);
        let (document, mut config) = Document::read(&file, &settings)?;
        if flags.iter().any(|flag| flag.path == "database.url") {
            // The flag replaces all configured databases.
            config.sources.clear();
        }
        validate::one_or_several(&config, &document)?;
        for (at, source) in config.sources.iter_mut().enumerate() {
            let resolved = source.database.resolve(&env);
            resolved.map_err(|(key, error)| document.at(&format!("source.{at}.{key}"), error))?;
        }
        let resolved = config.database.resolve(&env);
        resolved.map_err(|(key, error)| document.at(&format!("database.{key}"), error))?;
        validate::validate(&config, &document)?;
        Ok(config)
    }
}
