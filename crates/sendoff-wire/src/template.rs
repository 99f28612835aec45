//! Templates for names: subjects, routing keys, stream names, paths.

use std::fmt;
use std::str::FromStr;

use sendoff::{Error, ErrorKind, Outgoing};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::field::{Field, with_default};

/// A text with fields of the message in braces: `orders.{topic}`, `{aggregate_type}/{aggregate_id}`, `{header:tenant}`.
/// `{key|none}` has a default for messages without the field; `{{` is a literal brace.
///
/// Fields: `id`, `topic`, `key`, `aggregate_type`, `aggregate_id`, `schema_version`, `priority`, `created_at` (RFC
/// 3339), `header:NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field, Option<String>),
}

/// A template needs a field that the message does not have. The message can never be sent with this template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfilled {
    template: String,
    field: String,
}

impl Unfilled {
    pub(crate) fn new(template: &str, field: &Field) -> Self {
        Self {
            template: template.to_owned(),
            field: field.to_string(),
        }
    }

    /// The reason for an operator. It does not contain the template, which may hold a secret. `what` is the setting
    /// that holds the template.
    pub fn wanted_by(&self, what: &str) -> String {
        let field = &self.field;
        format!(
            "the message has no {field}, and {what} needs it (use a default like {{{field}|none}} in the template, \
             then retry the message)"
        )
    }
}

impl fmt::Display for Unfilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.wanted_by(&format!("the template {}", self.template)))
    }
}

impl std::error::Error for Unfilled {}

impl Template {
    /// Fills the fields of a message into the template, unchanged.
    ///
    /// # Errors
    /// [`Unfilled`].
    pub fn fill(&self, outgoing: &Outgoing) -> Result<String, Unfilled> {
        self.fill_escaped(outgoing, |value, out| out.push_str(value))
    }

    /// Fills the fields of a message into the template, each passed through `escape`, so that the content of a field
    /// cannot act as the broker's syntax.
    ///
    /// # Errors
    /// [`Unfilled`].
    pub fn fill_escaped(&self, outgoing: &Outgoing, escape: impl Fn(&str, &mut String)) -> Result<String, Unfilled> {
        self.fill_named(outgoing, |_, value, out| escape(value, out))
    }

    /// Fills the fields of a message into the template, with escaping that depends on the field: `escape` gets the
    /// field's name first (`header` for all headers).
    ///
    /// # Errors
    /// [`Unfilled`].
    pub fn fill_named(
        &self,
        outgoing: &Outgoing,
        escape: impl Fn(&str, &str, &mut String),
    ) -> Result<String, Unfilled> {
        let mut out = String::with_capacity(self.text.len() + 32);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Field(field, default) => match (field.of(outgoing), default) {
                    (Some(value), _) => escape(field.name(), &value, &mut out),
                    (None, Some(default)) => escape(field.name(), default, &mut out),
                    (None, None) => return Err(Unfilled::new(&self.text, field)),
                },
            }
        }
        Ok(out)
    }

    /// The text of the template, if it has no fields.
    pub fn as_fixed(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text of the template before its first field.
    pub fn start(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            Some(Part::Field(..)) | None => "",
        }
    }

    /// The template with only its fields; all other text is `***`. For templates whose text may hold a secret.
    pub fn masked(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(_) => "***".to_owned(),
            Part::Field(field, None) => format!("{{{field}}}"),
            Part::Field(field, Some(_)) => format!("{{{field}|***}}"),
        };
        self.parts.iter().map(part).collect()
    }
}

impl FromStr for Template {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let (brace, behind) = rest[at..].split_at(1);
            if let Some(behind) = behind.strip_prefix(brace) {
                plain.push_str(brace);
                rest = behind;
                continue;
            }
            let end = if brace == "{" { behind.find('}') } else { None };
            let Some(end) = end else {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("the template {text:?} has an unmatched {brace}"),
                )
                .next_step("close every {field}; write {{ or }} for a brace"));
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            let (field, default) = with_default(&behind[..end]);
            parts.push(Part::Field(field.parse()?, default.map(str::to_owned)));
            rest = &behind[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_template_with_a_secret_is_its_fields() {
        let template: Template = "Bearer hunter2 {key|hunter2}{header:tenant}".parse().unwrap();
        assert_eq!(template.masked(), "***{key|***}{header:tenant}");
        assert_eq!(template.start(), "Bearer hunter2 ");
        assert_eq!("{topic}/a".parse::<Template>().unwrap().start(), "");
    }

    #[test]
    fn what_is_missing_can_be_told_without_the_template() {
        let unfilled = Unfilled::new("Bearer hunter2 {key}", &Field::Key);
        let said = unfilled.wanted_by("the header authorization");
        assert!(
            said.contains("no key, and the header authorization needs it") && !said.contains("hunter2"),
            "{said}"
        );
    }
}
