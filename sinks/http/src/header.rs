//! Configured headers of every request.

use std::fmt;

use reqwest::header::{HeaderName, HeaderValue};
use sendoff::{Error, ErrorKind, Outgoing, Result};
use sendoff_wire::escape::Encodings;
use sendoff_wire::{Secret, Template};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::encode::safe_value;

/// The value of a configured header: a text with fields of the message in braces ([`Template`]), or a reference to a
/// secret (`{ env = "NAME" }`, `{ file = "path" }`), which is sent as it is.
///
/// It prints and serialises only its fields: the rest may be a token.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderTemplate(Kept);

/// Parts of the names of headers that hold a login.
const CREDENTIALS: [&str; 8] = [
    "auth",
    "cookie",
    "credential",
    "key",
    "passw",
    "secret",
    "session",
    "token",
];

#[derive(Clone, PartialEq, Eq)]
enum Kept {
    /// The same for all messages.
    Secret(Secret),
    /// Different for each message.
    Template(Template),
}

impl HeaderTemplate {
    /// Parses a header value.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`]. The error does not quote the text, which may be a secret.
    pub fn parse(text: &str) -> Result<Self> {
        // The template's own error would quote the text.
        let template: Template = text.parse().map_err(|_| {
            Error::new(ErrorKind::Invalid, "the value of a header of the HTTP sink is invalid")
                .because("a field in braces is not closed or is unknown")
                .next_step(
                    "use fields like {topic} or {header:tenant}, and {{ for a literal brace; put a secret with braces \
                     into a file or a variable",
                )
        })?;
        // It would be encoded in every request, and never arrive as intended.
        if text.contains(char::is_control) {
            return Err(
                Error::new(ErrorKind::Invalid, "the value of a header of the HTTP sink is invalid")
                    .because("it contains a line break or another control character")
                    .next_step("use printable ASCII"),
            );
        }
        Ok(Self(match template.as_fixed() {
            Some(text) => Kept::Secret(text.into()),
            None => Kept::Template(template),
        }))
    }

    /// Whether the value depends on the message.
    pub(crate) fn has_fields(&self) -> bool {
        matches!(self.0, Kept::Template(_))
    }

    /// Whether the value is a login: a referenced secret, or a header that is known to hold one.
    pub(crate) fn is_credential(&self, name: &str) -> bool {
        match &self.0 {
            Kept::Template(_) => false,
            Kept::Secret(Secret::Env { .. } | Secret::File { .. }) => true,
            Kept::Secret(Secret::Value(_)) => {
                let name = name.to_ascii_lowercase();
                CREDENTIALS.iter().any(|word| name.contains(word))
            }
        }
    }

    /// Reads the secret, if it is one.
    pub(crate) fn open(&self, name: &str) -> Result<Filling> {
        Ok(match &self.0 {
            Kept::Template(template) => Filling::Template(template.clone()),
            Kept::Secret(secret) => Filling::Fixed(HeaderValue::try_from(secret.reveal()?).map_err(|_| {
                let what = format!("the header {name} of the HTTP sink is invalid");
                Error::new(ErrorKind::Invalid, what)
                    .because("its value is not valid in HTTP")
                    .next_step("use printable ASCII")
            })?),
        })
    }
}

/// A value that can be filled in.
pub(crate) enum Filling {
    Fixed(HeaderValue),
    Template(Template),
}

impl Filling {
    /// The value for a message. The error is the reason why there is none.
    pub(crate) fn value(
        &self,
        name: &HeaderName,
        outgoing: &Outgoing,
        encodings: &mut Encodings,
    ) -> Result<HeaderValue, String> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::Template(template) => {
                let filled = template.fill(outgoing);
                let filled =
                    filled.map_err(|unfilled| unfilled.wanted_by(&format!("the header {name} of the sink")))?;
                safe_value(name, &filled, encodings)
            }
        }
    }
}

impl From<Secret> for HeaderTemplate {
    fn from(secret: Secret) -> Self {
        Self(Kept::Secret(secret))
    }
}

impl fmt::Debug for HeaderTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kept::Secret(secret) => write!(f, "{secret:?}"),
            Kept::Template(template) => f.write_str(&template.masked()),
        }
    }
}

impl Serialize for HeaderTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Kept::Secret(secret) => secret.serialize(serializer),
            Kept::Template(template) => serializer.serialize_str(&template.masked()),
        }
    }
}

impl<'de> Deserialize<'de> for HeaderTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Secret::deserialize(deserializer)? {
            Secret::Value(text) => Self::parse(&text).map_err(serde::de::Error::custom),
            secret => Ok(secret.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_fields_is_a_secret_and_of_another_only_the_fields_are_seen() {
        for (text, shown) in [
            ("Bearer hunter2", "***"),
            ("{header:tenant}", "{header:tenant}"),
            ("hunter2-{key|hunter2}", "***{key|***}"),
        ] {
            let header = HeaderTemplate::parse(text).unwrap();
            assert_eq!(format!("{header:?}"), shown);
            assert_eq!(serde_json::to_value(&header).unwrap(), shown);
            assert_eq!(header.has_fields(), text.contains('{'));
        }
    }

    #[test]
    fn braces_of_a_text_are_doubled_and_those_of_a_secret_elsewhere_are_not() {
        let fixed = |header: HeaderTemplate| match header.open("x").unwrap() {
            Filling::Fixed(value) => value,
            Filling::Template(template) => panic!("{template}"),
        };
        assert_eq!(fixed(HeaderTemplate::parse("a{{b}}").unwrap()), "a{b}");
        assert_eq!(fixed(Secret::from("a{b").into()), "a{b");
    }

    #[test]
    fn what_cannot_work_is_refused_without_being_quoted() {
        for text in [
            "hunter2{",
            "hunter2{tpoic}",
            "hunter2}",
            "hunter2\r\n{key}",
            "hunter2\n",
        ] {
            let error = HeaderTemplate::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(
                !format!("{error:?}").contains("hunter2") && error.next().is_some(),
                "{error}"
            );
        }
    }
}
