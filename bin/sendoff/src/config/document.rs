//! The settings with their positions, so that an error names the line or the variable.

use std::ops::Range;

use sendoff::{Error, ErrorKind, Result};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::file::ConfigFile;
use super::unread::Unread;
use super::{Config, Database, Override, sink, source};

/// The file, with the settings from outside applied.
pub(super) struct Document<'a> {
    file: &'a ConfigFile,
    root: DeTable<'a>,
    /// The path and the origin of each setting from outside.
    origins: Vec<(String, &'a str)>,
}

impl<'a> Document<'a> {
    /// Reads the file, then applies the settings one by one. Each is checked immediately, so that an error names it.
    pub(super) fn read(file: &'a ConfigFile, settings: &'a [Override]) -> Result<(Self, Config)> {
        let root = DeTable::parse(&file.text).map_err(|mut error| {
            let line = error.span().map_or(1, |span| file.line(span.start));
            // The error would quote the line, which may contain a password.
            error.set_input(None);
            Error::new(
                ErrorKind::Invalid,
                format!("{} line {line} is not valid TOML", file.name),
            )
            .because(error.message().to_owned())
            .next_step("correct the line: text needs quotes, sections need [brackets]")
            .with_source(error)
        })?;
        let mut document = Self {
            file,
            root: root.into_inner(),
            origins: Vec::new(),
        };
        let mut config = config(document.root.clone()).map_err(|unread| document.unread(&unread))?;
        for setting in settings {
            config = document.set(setting)?;
        }
        Ok((document, config))
    }

    /// An error about the setting at `path`, with its position.
    pub(super) fn at(&self, path: &str, error: Error) -> Error {
        let mut placed = Error::new(error.kind(), format!("{}{}", self.place(path), error.what()));
        if let Some(why) = error.why() {
            placed = placed.because(why);
        }
        if let Some(next) = error.next() {
            placed = placed.next_step(next);
        }
        placed.with_source(error)
    }

    /// The position of the setting at `path`, as the start of a sentence; empty for a default.
    fn place(&self, path: &str) -> String {
        let from_outside = self.origins.iter().rev().find(|(of, _)| of == path);
        if let Some((_, origin)) = from_outside {
            return format!("{origin}: ");
        }
        let span = find(&self.root, path);
        span.map_or_else(String::new, |span| format!("{}: ", self.line(span)))
    }

    fn line(&self, span: Range<usize>) -> String {
        format!("{} line {}", self.file.name, self.file.line(span.start))
    }

    fn unread(&self, unread: &Unread) -> Error {
        let span = unread.span.clone().unwrap_or_default();
        unread.error(&self.line(span.clone()), &path_to(&self.root, span.start).join("."))
    }

    /// Applies a setting. Its value is tried as text first, then as a TOML value.
    fn set(&mut self, setting: &'a Override) -> Result<Config> {
        let text = DeValue::String(setting.value.as_str().into());
        let number = DeValue::parse(&setting.value).ok().map(Spanned::into_inner);
        let mut refused = None;
        for value in [Some(text), number].into_iter().flatten() {
            let mut root = self.root.clone();
            let path = insert(&mut root, setting, value)?;
            match config(root.clone()) {
                Ok(config) => {
                    self.root = root;
                    self.origins.push((path, &setting.origin));
                    return Ok(config);
                }
                Err(unread) => refused = Some(unread.error(&setting.origin, &path)),
            }
        }
        Err(refused.unwrap_or_else(|| Error::new(ErrorKind::Invalid, format!("{} is invalid", setting.origin))))
    }
}

fn config(mut root: DeTable<'_>) -> Result<Config, Unread> {
    let (sinks, sources) = (root.remove("sink"), root.remove("source"));
    let rest = Deserializer::from(Spanned::new(0..0, root));
    let mut config = Config::deserialize(rest).map_err(|error| Unread::new(&error, &[]))?;
    if let Some(sinks) = sinks {
        config.sinks = sink::read(sinks)?;
    }
    if let Some(sources) = sources {
        config.sources = source::read(sources)?;
    }
    Ok(config)
}

/// Inserts `value` at the setting's path, and returns the path with numbers instead of the names of sinks and sources.
fn insert<'a>(root: &mut DeTable<'a>, setting: &'a Override, value: DeValue<'a>) -> Result<String> {
    let nowhere = |why: &str, next: String| {
        Error::new(
            ErrorKind::Invalid,
            format!("{} does not match a setting", setting.origin),
        )
        .because(why)
        .next_step(next)
    };
    let names: Vec<&str> = setting.path.split('.').collect();
    let (table, key, path) = match names.as_slice() {
        [list @ ("sink" | "source"), name, key] if *key != "route" => {
            let at = named(root, list, name).ok_or_else(|| {
                nowhere(
                    &format!("no {list} has that name"),
                    format!("add the [[{list}]] to the file, or unset the variable"),
                )
            })?;
            let table = match root.get_mut(*list).map(Spanned::get_mut) {
                Some(DeValue::Array(entries)) => entries.get_mut(at).map(Spanned::get_mut),
                _ => None,
            };
            (table, *key, format!("{list}.{at}.{key}"))
        }
        ["route" | "topic" | "sink" | "source", ..] => {
            let next = "set it in the file; a variable can only change settings of a sink or a source, as \
                        SENDOFF_SINK__NAME__SETTING";
            return Err(nowhere("lists can only be set in the file", next.to_owned()));
        }
        [section, key] => {
            let new = || Spanned::new(0..0, DeValue::Table(DeTable::new()));
            let section = root.entry(Spanned::new(0..0, (*section).into())).or_insert_with(new);
            (Some(section.get_mut()), *key, setting.path.clone())
        }
        _ => {
            return Err(nowhere(
                "its name is not the path of a setting",
                "write it like SENDOFF_RELAY__LEASE".to_owned(),
            ));
        }
    };
    let Some(DeValue::Table(table)) = table else {
        return Err(nowhere("its section is not a table", "correct the file".to_owned()));
    };
    if Database::URL_KEYS.contains(&key) {
        for other in Database::URL_KEYS {
            table.remove(other);
        }
    }
    // Replacing only the value would keep the position of the old key.
    table.remove(key);
    table.insert(Spanned::new(0..0, key.to_owned().into()), Spanned::new(0..0, value));
    Ok(path)
}

/// The entry of a list with this name. Variables cannot contain dashes or lower case.
fn named(root: &DeTable<'_>, list: &str, name: &str) -> Option<usize> {
    let Some(DeValue::Array(entries)) = root.get(list).map(Spanned::get_ref) else {
        return None;
    };
    let is_it = |entry: &Spanned<DeValue<'_>>| {
        let of_entry = entry.get_ref().get("name").and_then(|name| name.get_ref().as_str());
        of_entry.is_some_and(|of_entry| of_entry.to_ascii_lowercase().replace('-', "_") == name.replace('-', "_"))
    };
    entries.iter().position(is_it)
}

/// The position of the setting at `path`, or of its nearest parent in the file.
fn find(root: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let mut names = path.split('.');
    let mut value = root.get(names.next()?)?;
    for name in names {
        let next = match value.get_ref() {
            DeValue::Table(table) => table.get(name),
            DeValue::Array(array) => name.parse::<usize>().ok().and_then(|at| array.get(at)),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => break,
        }
    }
    Some(value.span()).filter(|span| !span.is_empty())
}

/// The path of the setting at a byte offset.
fn path_to(table: &DeTable<'_>, at: usize) -> Vec<String> {
    for (key, value) in table {
        let path = if key.span().contains(&at) {
            Some(Vec::new())
        } else {
            path_into(value, at)
        };
        if let Some(path) = path {
            return std::iter::once(key.get_ref().to_string()).chain(path).collect();
        }
    }
    Vec::new()
}

fn path_into(value: &Spanned<DeValue<'_>>, at: usize) -> Option<Vec<String>> {
    let inner = match value.get_ref() {
        DeValue::Table(table) => path_to(table, at),
        DeValue::Array(array) => {
            let found = array
                .iter()
                .enumerate()
                .find_map(|(number, value)| Some((number, path_into(value, at)?)));
            found.map_or_else(Vec::new, |(number, path)| {
                std::iter::once(number.to_string()).chain(path).collect()
            })
        }
        _ => Vec::new(),
    };
    (!inner.is_empty() || value.span().contains(&at)).then_some(inner)
}
