//! Checks across the sections of the configuration.

use sendoff::{Error, ErrorKind, Result};

use super::document::Document;
use super::nearest::nearest;
use super::{Config, Database, Route};

/// Databases are in `[database]` or in `[[source]]`s, not in both: it would be unclear which of them a setting is for.
pub(super) fn one_or_several(config: &Config, document: &Document<'_>) -> Result<()> {
    if config.sources.is_empty() || config.database == Database::default() {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Invalid, "there are both [database] and [[source]]")
        .because("[database] is for one database, [[source]] for several, each with all its settings")
        .next_step("turn [database] into a [[source]], or remove one of the two");
    Err(document.at("database", error))
}

pub(super) fn validate(config: &Config, document: &Document<'_>) -> Result<()> {
    let relay = config.relay.validate();
    relay.map_err(|(key, error)| document.at(&format!("relay.{key}"), error))?;
    let retry = config.retry.validate();
    retry.map_err(|(key, error)| document.at(&format!("retry.{key}"), error))?;
    let trace = config.trace.validate();
    trace.map_err(|(key, error)| document.at(&format!("trace.{key}"), error))?;
    let watch = config.watch.validate();
    watch.map_err(|(key, error)| document.at(&format!("watch.{key}"), error))?;
    let statsd = config.statsd.validate();
    statsd.map_err(|(key, error)| document.at(&format!("statsd.{key}"), error))?;
    for (at, topic) in config.topics.iter().enumerate() {
        let retry = topic.retry(&config.retry).validate();
        retry.map_err(|(key, error)| document.at(&format!("topic.{at}.retry.{key}"), error))?;
        if config.topics[..at]
            .iter()
            .any(|earlier| earlier.pattern == topic.pattern)
        {
            return Err(document.at(&format!("topic.{at}.match"), twice("topic", topic.pattern.as_str())));
        }
    }
    sinks(config, document)?;
    routes(config, &config.routes, "route", document)?;
    sources(config, document)
}

fn sources(config: &Config, document: &Document<'_>) -> Result<()> {
    for (at, source) in config.sources.iter().enumerate() {
        let name = &source.name;
        let earlier = config.sources[..at].iter().map(|earlier| earlier.name.as_str());
        let named = check_name("source", name, earlier);
        named.map_err(|error| document.at(&format!("source.{at}.name"), error))?;
        if source.database.url().is_err() {
            let error = Error::new(ErrorKind::Invalid, format!("the source {name:?} has no url"))
                .because("none of url, url_env and url_file is set")
                .next_step("add one of url, url_env and url_file");
            return Err(document.at(&format!("source.{at}"), error));
        }
        routes(config, &source.routes, &format!("source.{at}.route"), document)?;
    }
    Ok(())
}

fn sinks(config: &Config, document: &Document<'_>) -> Result<()> {
    for (at, sink) in config.sinks.iter().enumerate() {
        let (name, settings) = (sink.name(), sink.settings());
        let fault = |key: &str, error: Error| Err(document.at(&format!("sink.{at}.{key}"), error));
        let earlier = config.sinks[..at].iter().map(super::SinkConfig::name);
        if let Err(error) = check_name("sink", name, earlier) {
            return fault("name", error);
        }
        let is_zero = [
            ("batch", settings.batch == 0),
            ("concurrency", settings.concurrency == 0),
            ("timeout", settings.timeout.is_zero()),
        ];
        if let Some((key, _)) = is_zero.into_iter().find(|(_, is_zero)| *is_zero) {
            let error = Error::new(ErrorKind::Invalid, format!("{key} of the sink {name:?} cannot be 0"))
                .because("nothing would ever be sent");
            return fault(
                key,
                error.next_step("use a value above 0, or remove the line for the default"),
            );
        }
        if let Err(error) = sink.validate() {
            return fault("", error);
        }
    }
    Ok(())
}

/// Checks the name of a sink or a source.
fn check_name<'a>(what: &str, name: &str, mut earlier: impl Iterator<Item = &'a str>) -> Result<()> {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 60 || !name.chars().all(is_letter) {
        return Err(
            Error::new(ErrorKind::Invalid, format!("a {what} cannot have the name {name:?}"))
                .because("names are used in tables, variables and log lines")
                .next_step("use 1 to 60 lower-case letters, digits, - and _"),
        );
    }
    // In variables the two names would be the same.
    let alike = |earlier: &&str| earlier.replace('-', "_") == name.replace('-', "_");
    match earlier.find(alike) {
        None => Ok(()),
        Some(earlier) => Err(Error::new(
            ErrorKind::Invalid,
            format!("two {what}s have the names {earlier:?} and {name:?}"),
        )
        .because("routes, flags and variables could not distinguish the two")
        .next_step(format!("give each {what} its own name"))),
    }
}

/// Checks a list of routes; `path` is its path.
fn routes(config: &Config, routes: &[Route], path: &str, document: &Document<'_>) -> Result<()> {
    let known: Vec<&str> = config.sinks.iter().map(super::SinkConfig::name).collect();
    for (at, route) in routes.iter().enumerate() {
        let fault = |key: &str, error: Error| Err(document.at(&format!("{path}.{at}.{key}"), error));
        let pattern = route.pattern.as_str();
        if routes[..at].iter().any(|earlier| earlier.pattern == route.pattern) {
            return fault("match", twice("route", pattern));
        }
        if route.to.is_empty() {
            let error = Error::new(ErrorKind::Invalid, format!("the route of {pattern:?} leads nowhere"))
                .because("the list of sinks in `to` is empty");
            return fault("to", error.next_step("name at least one sink"));
        }
        for (sink, name) in route.to.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let what = format!("the route of {pattern:?} leads to {name:?}");
                let error = Error::new(ErrorKind::Invalid, what).because("no sink has that name");
                let next = match (nearest(name, &known), known.is_empty()) {
                    (Some(meant), _) => format!("did you mean {meant:?}?"),
                    (None, false) => format!("use {}, or add a [[sink]] with that name", known.join(" or ")),
                    (None, true) => "add a [[sink]] with that name".to_owned(),
                };
                return fault(&format!("to.{sink}"), error.next_step(next));
            }
            if route.to[..sink].contains(name) {
                let what = format!("the route of {pattern:?} leads to {name:?} twice");
                return fault(
                    &format!("to.{sink}"),
                    Error::new(ErrorKind::Invalid, what)
                        .because("a route sends a message to each sink only once")
                        .next_step("remove one of the two names"),
                );
            }
        }
    }
    Ok(())
}

fn twice(what: &str, pattern: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("a second [[{what}]] matches {pattern:?}"))
        .because("the first section that matches applies, so the second one would never apply")
        .next_step("merge the two sections, or change one pattern")
}
