//! Unreadable settings, and their error messages.

use std::ops::Range;

use sendoff::{Error, ErrorKind};

use super::nearest::nearest;

/// Why a document is not a valid configuration.
#[derive(Debug)]
pub(super) struct Unread {
    /// The message of serde.
    message: String,
    /// The position in the text.
    pub(super) span: Option<Range<usize>>,
    /// Settings that are allowed there and that serde does not list.
    also_known: &'static [&'static str],
    /// Settings whose values are not repeated.
    secrets: &'static [&'static str],
}

impl Unread {
    pub(super) fn new(error: &toml::de::Error, also_known: &'static [&'static str]) -> Self {
        Self {
            message: error.message().to_owned(),
            span: error.span(),
            also_known,
            secrets: &[],
        }
    }

    /// A value that must be a list of tables and is not.
    pub(super) fn list(name: &str, span: Range<usize>) -> Self {
        Self {
            message: format!("invalid type: map, expected [[{name}]] with two brackets"),
            span: Some(span),
            also_known: &[],
            secrets: &[],
        }
    }

    /// Something that this program cannot do; the advice is in brackets at the end.
    pub(super) fn because(message: &str, span: Range<usize>) -> Self {
        Self {
            message: message.to_owned(),
            span: Some(span),
            also_known: &[],
            secrets: &[],
        }
    }

    /// Sets the position, unless a more exact one is known.
    pub(super) fn or_at(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert(span);
        self
    }

    /// Does not repeat the values of these settings.
    pub(super) fn hiding(mut self, secrets: &'static [&'static str]) -> Self {
        self.secrets = secrets;
        self
    }

    /// The error for people. `place` is the position and `path` the path of the setting.
    pub(super) fn error(&self, place: &str, path: &str) -> Error {
        let Subject { section, key } = Subject::of(path);
        let subject = key
            .as_ref()
            .map_or_else(|| section.clone(), |key| format!("{key} in {section}"));
        let invalid = |what: String| Error::new(ErrorKind::Invalid, format!("{place}: {what}"));
        let (start, expected) = self.message.split_once(", expected ").unwrap_or((&self.message, ""));
        if let Some(unknown) = quoted(start, "unknown field ") {
            let is_section = path.split('.').next() == Some(unknown);
            let section = if is_section { "the configuration" } else { &section };
            // Sinks and sources are parsed separately, so serde does not list them.
            let also_known = if is_section {
                &["sink", "source"]
            } else {
                self.also_known
            };
            let known: Vec<&str> = names(expected).chain(also_known.iter().copied()).collect();
            let guess = nearest(unknown, &known).map(|name| format!("did you mean {name}? "));
            return invalid(format!("there is no setting {unknown:?} in {section}"))
                .because("unknown settings are rejected")
                .next_step(format!(
                    "{}known settings: {}",
                    guess.unwrap_or_default(),
                    known.join(", ")
                ));
        }
        if let Some(missing) = quoted(start, "missing field ") {
            return invalid(format!("{section} has no {missing}"))
                .because("this setting has no default")
                .next_step(format!("add {missing} = …"));
        }
        if let Some(variant) = quoted(start, "unknown variant ") {
            let known: Vec<&str> = names(expected).collect();
            return invalid(format!("{subject} cannot be {variant:?}"))
                .because("the value is unknown")
                .next_step(format!("use {}", known.join(" or ")));
        }
        let found = ["invalid type: ", "invalid value: "]
            .iter()
            .find_map(|form| start.strip_prefix(form));
        let allowed = match (expected, &key) {
            ("a sequence", None) => format!("write [{section}] with two brackets"),
            (expected, _) => format!("write {}", in_words(expected)),
        };
        const FORM: &str = "the value has the wrong type or format";
        match (found, &key) {
            (None, _) => {
                let (why, next) = apart(&self.message);
                let error = invalid(format!("{subject} cannot be used")).because(why);
                next.into_iter().fold(error, sendoff::Error::next_step)
            }
            // A value that may be a password is not repeated.
            (Some(_), Some(key)) if self.is_secret(key) => invalid(format!("{subject} cannot be used"))
                .because(FORM)
                .next_step(allowed),
            (Some("map"), _) => invalid(format!("{subject} cannot be a single section"))
                .because("this setting is a list")
                .next_step(allowed),
            (Some(found), _) => invalid(format!("{subject} cannot be {found}"))
                .because(FORM)
                .next_step(allowed),
        }
    }

    fn is_secret(&self, key: &str) -> bool {
        let first = key.split('.').next().unwrap_or(key);
        self.secrets.contains(&first) || SECRET.iter().any(|word| key.contains(word))
    }
}

/// Parts of the names of settings that may contain a password.
const SECRET: [&str; 7] = ["url", "password", "secret", "token", "header", "body", "nkey"];

/// Splits an error of ours that went through serde as text: its advice is in brackets at the end.
fn apart(message: &str) -> (&str, Option<&str>) {
    match message.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        Some((why, next)) => (why, Some(next)),
        None => (message, None),
    }
}

/// The setting of an error: `relay.lease` is `lease` in `[relay]`, and `sink.2.path` is `path` in `[[sink]]`.
struct Subject {
    section: String,
    key: Option<String>,
}

impl Subject {
    fn of(path: &str) -> Self {
        let (section, rest) = path.split_once('.').unwrap_or((path, ""));
        let is_number = |name: &&str| name.bytes().all(|byte| byte.is_ascii_digit());
        let is_list = rest
            .split('.')
            .next()
            .is_some_and(|first| !first.is_empty() && is_number(&first));
        let names: Vec<&str> = rest.split('.').filter(|name| !is_number(name)).collect();
        Self {
            section: if is_list {
                format!("[[{section}]]")
            } else {
                format!("[{section}]")
            },
            key: (!names.is_empty()).then(|| names.join(".")),
        }
    }
}

fn quoted<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.strip_prefix('`')?.split('`').next()
}

/// The parts between backticks.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn in_words(expected: &str) -> &str {
    match expected {
        "usize" | "u32" | "u64" => "a whole number, without quotes",
        "f64" => "a number, without quotes",
        "a boolean" => "true or false, without quotes",
        "a string" | "path string" => "text in quotes",
        "a sequence" => "a list in brackets",
        other if other.starts_with("struct ") => "settings below it, one per line",
        other => other,
    }
}
