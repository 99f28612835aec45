//! `[[source]]`: one of several databases that one relay serves.

use sendoff::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::nearest::nearest;
use super::unread::Unread;
use super::{Config, Database, Route};

/// One database among several, optionally with its own routes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SourceConfig {
    /// Its name in `--source`, log lines and variables.
    pub(crate) name: String,
    /// Where it is: the settings of `[database]`.
    #[serde(flatten)]
    pub(crate) database: Database,
    /// Where its messages go; if empty, the common `[[route]]`s apply.
    #[serde(rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<Route>,
}

/// The settings of a source that are not those of a database.
#[derive(Deserialize)]
struct Own {
    name: String,
    #[serde(default, rename = "route")]
    routes: Vec<Route>,
}

const OWN: [&str; 2] = ["name", "route"];

impl Config {
    /// The configuration for one source: its database, its routes, and the sinks to which they lead.
    pub(crate) fn of_source(&self, source: &SourceConfig) -> Self {
        let routes = if source.routes.is_empty() {
            &self.routes
        } else {
            &source.routes
        };
        let leads_to = |name: &str| routes.iter().any(|route| route.to.iter().any(|to| to == name));
        Self {
            database: source.database.clone(),
            routes: routes.clone(),
            sinks: self
                .sinks
                .iter()
                .filter(|sink| leads_to(sink.name()))
                .cloned()
                .collect(),
            sources: Vec::new(),
            ..self.clone()
        }
    }

    /// The source with this name, or all sources.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when no source has this name.
    pub(crate) fn sources(&self, name: Option<&str>) -> Result<Vec<&SourceConfig>> {
        let Some(name) = name else {
            return Ok(self.sources.iter().collect());
        };
        let found: Vec<&SourceConfig> = self.sources.iter().filter(|source| source.name == name).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let known: Vec<&str> = self.sources.iter().map(|source| source.name.as_str()).collect();
        let error = Error::new(ErrorKind::Invalid, format!("there is no source {name:?}"));
        Err(match (nearest(name, &known), known.is_empty()) {
            (_, true) => error
                .because("the configuration has one [database] and no [[source]]")
                .next_step("remove --source, or add a [[source]] with that name"),
            (Some(meant), false) => error
                .because("no [[source]] in the configuration has that name")
                .next_step(format!("did you mean {meant:?}?")),
            (None, false) => error
                .because("no [[source]] in the configuration has that name")
                .next_step(format!("use {}", known.join(" or "))),
        })
    }

    /// The database of a command that works on one database.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when no source has this name, or when there are several and no name is given.
    pub(crate) fn database_of(&self, name: Option<&str>) -> Result<&Database> {
        if self.sources.is_empty() && name.is_none() {
            return Ok(&self.database);
        }
        match self.sources(name)?.as_slice() {
            [source] => Ok(&source.database),
            several => {
                let names: Vec<&str> = several.iter().map(|source| source.name.as_str()).collect();
                Err(Error::new(ErrorKind::Invalid, "several databases are configured")
                    .because("this command works on one database at a time")
                    .next_step(format!("choose one: --source {}", names.join(" or --source "))))
            }
        }
    }
}

/// Reads all `[[source]]`s.
pub(super) fn read(sources: Spanned<DeValue<'_>>) -> Result<Vec<SourceConfig>, Unread> {
    let span = sources.span();
    let DeValue::Array(entries) = sources.into_inner() else {
        return Err(Unread::list("source", span));
    };
    let mut read = Vec::with_capacity(entries.len());
    for entry in entries {
        let span = entry.span();
        let DeValue::Table(mut database) = entry.into_inner() else {
            return Err(Unread::list("source", span));
        };
        let own: DeTable<'_> = OWN.iter().filter_map(|name| database.remove_entry(*name)).collect();
        let unread = |error: toml::de::Error| Unread::new(&error, &OWN).or_at(span.clone());
        let own = Own::deserialize(Deserializer::from(Spanned::new(span.clone(), own))).map_err(unread)?;
        let database = Deserializer::from(Spanned::new(span.clone(), database));
        read.push(SourceConfig {
            name: own.name,
            database: Database::deserialize(database).map_err(unread)?,
            routes: own.routes,
        });
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::Override;
    use super::*;

    const SINKS: &str = "[[sink]]\nname = \"a\"\ntype = \"stdout\"\n[[sink]]\nname = \"b\"\ntype = \"stdout\"\n\
                         [[route]]\nmatch = \"*\"\nto = [\"a\"]\n";
    const TWO: &str = "[[source]]\nname = \"shop\"\nurl = \"sqlite:shop.db\"\n\
                       [[source]]\nname = \"old-shop\"\nurl = \"sqlite:old.db\"\ntable_prefix = \"old_\"\n\
                       [[source.route]]\nmatch = \"order.*\"\nto = [\"b\"]\n";

    fn load(text: &str, env: &[(&str, &str)], flags: &[Override]) -> Result<Config> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sendoff.toml");
        std::fs::write(&path, text).unwrap();
        let env = env
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Config::load(Some(&path), env, flags)
    }

    fn refused(text: &str) -> String {
        let error = load(text, &[], &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        error.to_string()
    }

    #[test]
    fn each_source_has_its_database_and_its_routes_with_their_sinks() {
        let config = load(&format!("{SINKS}{TWO}"), &[], &[]).unwrap();
        let of = |at: usize| config.of_source(&config.sources[at]);
        let (shop, old) = (of(0), of(1));
        assert_eq!(shop.database.url().unwrap().to_string(), "sqlite:shop.db");
        assert_eq!(shop.routes, config.routes);
        let names =
            |config: &Config| -> Vec<String> { config.sinks.iter().map(|sink| sink.name().to_owned()).collect() };
        assert_eq!(
            (names(&shop), names(&old)),
            (vec!["a".to_owned()], vec!["b".to_owned()])
        );
        assert_eq!(old.routes[0].pattern.as_str(), "order.*");
        assert_eq!(old.database.names().unwrap().prefix(), "old_");
        let again = load(&config.to_toml().unwrap(), &[], &[]).unwrap();
        assert_eq!(again, config, "the printed configuration loads again");
    }

    #[test]
    fn a_command_is_about_one_source() {
        let config = load(&format!("{SINKS}{TWO}"), &[], &[]).unwrap();
        let url = |name| {
            config
                .database_of(name)
                .map(|database| database.url().unwrap().to_string())
        };
        assert_eq!(url(Some("old-shop")).unwrap(), "sqlite:old.db");
        let several = url(None).unwrap_err().to_string();
        assert!(several.contains("--source shop or --source old-shop"), "{several}");
        let slip = url(Some("shpo")).unwrap_err().to_string();
        assert!(slip.contains("did you mean \"shop\""), "{slip}");
        let none = load("", &[], &[])
            .unwrap()
            .database_of(Some("shop"))
            .unwrap_err()
            .to_string();
        assert!(none.contains("remove --source"), "{none}");
        let one = load("[[source]]\nname = \"shop\"\nurl = \"sqlite:shop.db\"", &[], &[]).unwrap();
        assert_eq!(
            one.database_of(None).unwrap().url().unwrap().to_string(),
            "sqlite:shop.db"
        );
    }

    #[test]
    fn sources_take_variables_by_their_names() {
        let env = [
            ("SENDOFF_SOURCE__OLD_SHOP__URL_ENV", "OLD"),
            ("OLD", "sqlite:elsewhere.db"),
            ("SENDOFF_SOURCE__SHOP__LISTEN", "false"),
        ];
        let config = load(&format!("{SINKS}{TWO}"), &env, &[]).unwrap();
        assert_eq!(
            config.sources[1].database.url().unwrap().to_string(),
            "sqlite:elsewhere.db"
        );
        assert!(!config.sources[0].database.listen);
        let error = load(TWO, &[("SENDOFF_SOURCE__SHOOP__URL", "x")], &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("no source has that name"), "{error}");
    }

    #[test]
    fn the_flag_of_one_database_takes_the_place_of_all_sources() {
        let flag = [Override::flag("--database", "database.url", "sqlite:flag.db")];
        let config = load(&format!("{SINKS}{TWO}"), &[], &flag).unwrap();
        assert!(config.sources.is_empty());
        assert_eq!(
            config.database_of(None).unwrap().url().unwrap().to_string(),
            "sqlite:flag.db"
        );
    }

    #[test]
    fn a_bad_source_is_told_with_its_line() {
        let shop = "[[source]]\nname = \"shop\"\nurl = \"sqlite:a.db\"\n";
        for (text, words) in [
            ("[source]\nname = \"a\"".to_owned(), ["line 1", "two brackets"]),
            (
                "[[source]]\nurl = \"sqlite:a.db\"".to_owned(),
                ["line 1", "has no name"],
            ),
            ("[[source]]\nname = \"a\"".to_owned(), ["line 1", "has no url"]),
            (
                format!("{shop}tabel_prefix = \"x\""),
                ["line 4", "did you mean table_prefix"],
            ),
            (format!("{shop}{shop}"), ["line 5", "two sources have the names"]),
            (shop.replace("\"shop\"", "\"Shop\""), ["line 2", "cannot have the name"]),
            (
                format!("{shop}[database]\nurl = \"sqlite:b.db\""),
                ["line 4", "[database] and [[source]]"],
            ),
            (
                format!("{SINKS}{shop}[[source.route]]\nmatch = \"*\"\nto = [\"c\"]"),
                ["line 15", "no sink has that name"],
            ),
            (
                format!("{shop}[[source]]\nname = \"b\"\nurl_env = \"NOT_SET\""),
                ["line 6", "NOT_SET is not set"],
            ),
        ] {
            let said = refused(&text);
            assert!(words.iter().all(|word| said.contains(word)), "{words:?} in {said}");
        }
    }
}
