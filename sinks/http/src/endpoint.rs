//! The URL of a message.

use std::cell::Cell;
use std::fmt;

use sendoff::{Error, ErrorKind, Outgoing, Result};
use sendoff_wire::escape::percent;
use sendoff_wire::{Address, Secret, Template};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

/// The URL of an endpoint: a text with fields of the message in braces ([`Template`]), or a reference to a variable or
/// a file with that text (`{ env = "NAME" }`, `{ file = "path" }`), for endpoints whose URL is a secret.
///
/// The content of a field is percent-encoded, so that it cannot add a path segment or a parameter. If the whole URL is
/// one field, for example `{header:endpoint}`, it is used as it is.
///
/// An endpoint is printed and serialised without its user, its password and its parameters.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Kept);

#[derive(Clone, PartialEq, Eq)]
enum Kept {
    Here(Template),
    Elsewhere(Secret),
}

impl Endpoint {
    /// Parses the URL of an endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`]. The error does not quote the text, which may hold a password.
    pub fn parse(text: &str) -> Result<Self> {
        let endpoint = Self(Kept::Here(template(text)?));
        endpoint.validate()?;
        Ok(endpoint)
    }

    /// Checks the URL, as far as that is possible without reading a secret.
    pub(crate) fn validate(&self) -> Result<()> {
        self.target_here().map(|_| ())
    }

    /// The target, if it is known without reading a secret.
    pub(crate) fn target_here(&self) -> Result<Option<Target>> {
        match &self.0 {
            Kept::Here(template) => Target::new(template.clone()).map(Some),
            Kept::Elsewhere(_) => Ok(None),
        }
    }

    /// Reads the URL, from the variable or file if it is a reference.
    pub(crate) fn open(&self) -> Result<Target> {
        match &self.0 {
            Kept::Here(template) => Target::new(template.clone()),
            Kept::Elsewhere(secret) => Target::new(template(secret.reveal()?.trim())?),
        }
    }
}

/// The parsed endpoint.
pub(crate) struct Target {
    template: Template,
    /// The URL, if it is the same for all messages.
    pub(crate) fixed: Option<Url>,
    /// A URL with the scheme, the host and the port of all messages, if these are the same.
    pub(crate) origin: Option<Url>,
    /// Whether the whole URL is one field of the message.
    is_field: bool,
}

impl Target {
    fn new(template: Template) -> Result<Self> {
        let text = template.to_string();
        let is_field = text.starts_with('{') && text.find('}') == Some(text.len() - 1);
        let fixed = match template.as_fixed() {
            Some(text) => Some(http(Url::parse(text).map_err(|error| error.to_string())).map_err(unusable)?),
            None => None,
        };
        if fixed.is_none() && !is_field && !text.starts_with("http://") && !text.starts_with("https://") {
            return Err(unusable("it starts with neither http:// nor https://".to_owned()));
        }
        let origin = match &fixed {
            Some(url) => Some(url.clone()),
            None => fixed_origin(template.start()).map_err(unusable)?,
        };
        Ok(Self {
            template,
            fixed,
            origin,
            is_field,
        })
    }

    /// Whether the text of the URL has a user or a password, outside fields of the message.
    pub(crate) fn has_login(&self) -> bool {
        let text = self.template.to_string();
        let authority = text.split_once("://").map_or("", |(_, rest)| rest);
        let end = authority.find(['/', '?', '#', '\\']).unwrap_or(authority.len());
        match authority[..end].rsplit_once('@') {
            Some((login, _)) => !(login.starts_with('{') && login.ends_with('}')),
            None => false,
        }
    }

    /// The URL for a message. The error is the reason why it has none.
    pub(crate) fn url(&self, outgoing: &Outgoing) -> Result<Url, String> {
        if let Some(url) = &self.fixed {
            return Ok(url.clone());
        }
        let dots = Cell::new(false);
        let filled = self.template.fill_escaped(outgoing, |value, out| {
            if self.is_field {
                out.push_str(value);
            } else {
                // A URL parser reads such a segment as "this folder" or "the folder above", even percent-encoded.
                dots.set(dots.get() || (!value.is_empty() && value.bytes().all(|byte| byte == b'.')));
                escape(value, out);
            }
        });
        let text = filled.map_err(|unfilled| unfilled.wanted_by("the sink's url"))?;
        if dots.get() {
            return Err(
                "a field in the URL of the message consists of dots, which would change the path (emit the \
                        message with another value)"
                    .to_owned(),
            );
        }
        http(Url::parse(&text).map_err(|error| error.to_string())).map_err(|why| {
            format!(
                "the URL of the message cannot be used: {why} (correct `url` of the sink, or emit \
                                    the message with other values)"
            )
        })
    }
}

/// Scheme, host and port: the part of a URL that errors may show. Paths and parameters may hold secrets.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The host of a template, if it ends before the first field and so is the same for all messages.
fn fixed_origin(start: &str) -> Result<Option<Url>, String> {
    let Some((scheme, rest)) = start.split_once("://") else {
        return Ok(None);
    };
    match rest.find(['/', '?', '#', '\\']) {
        None => Ok(None),
        Some(end) => {
            let url = Url::parse(&format!("{scheme}://{}", &rest[..end])).map_err(|error| error.to_string());
            http(url).map(Some)
        }
    }
}

fn http(url: Result<Url, String>) -> Result<Url, String> {
    let mut url = url?;
    match url.scheme() {
        "http" | "https" => {}
        // The error does not quote the scheme: if the text is not a URL, it may be part of a secret.
        _ => return Err("it starts with neither http:// nor https://".to_owned()),
    }
    url.set_fragment(None);
    Ok(url)
}

/// Parses a template. Its own error would quote the text.
fn template(text: &str) -> Result<Template> {
    text.parse()
        .map_err(|_| unusable("a field in braces is not closed or is unknown".to_owned()))
}

fn unusable(why: String) -> Error {
    Error::new(ErrorKind::Invalid, "`url` of the HTTP sink is invalid")
        .because(why)
        .next_step("use a URL like https://host/path; fields of the message are in braces, for example {topic}")
}

/// Percent-encodes all characters except the unreserved ones of RFC 3986.
fn escape(value: &str, out: &mut String) {
    for letter in value.chars() {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~' => out.push(letter),
            _ => percent(letter, out),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kept::Here(template) => match (template.as_fixed(), template.to_string()) {
                (Some(url), _) => match Address::parse(url) {
                    Ok(address) => write!(f, "{address}"),
                    Err(_) => f.write_str("***"),
                },
                (None, text) => f.write_str(&without_secrets(&text)),
            },
            Kept::Elsewhere(secret) => write!(f, "{secret:?}"),
        }
    }
}

/// A template cannot be parsed as a URL, so this removes rather too much than too little.
fn without_secrets(text: &str) -> String {
    let mut shown = text.to_owned();
    if let Some((scheme, rest)) = text.split_once("://") {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        if let Some(at) = rest[..end].rfind('@') {
            shown = format!("{scheme}://***{}", &rest[at..]);
        }
    }
    if let Some(at) = shown.find('?') {
        shown.truncate(at);
        shown.push_str("?***");
    }
    shown
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Kept::Here(_) => serializer.collect_str(self),
            Kept::Elsewhere(secret) => secret.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Secret::deserialize(deserializer)? {
            Secret::Value(text) => Self::parse(&text).map_err(serde::de::Error::custom),
            secret => Ok(Self(Kept::Elsewhere(secret))),
        }
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
