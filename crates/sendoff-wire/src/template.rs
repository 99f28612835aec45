//! Names made out of a message: subjects, routing keys, stream names, paths.

use std::fmt;
use std::str::FromStr;

use sendoff::{Delivery, Error, ErrorKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text with fields of the message in braces: `orders.{topic}`, `{aggregate_type}/{aggregate_id}`, `{header:tenant}`.
/// `{key|none}` has a default for messages that lack the field; `{{` is a brace.
///
/// Fields: `id`, `topic`, `key`, `aggregate_type`, `aggregate_id`, `schema_version`, `priority`, `header:NAME`.
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

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Id,
    Topic,
    Key,
    AggregateType,
    AggregateId,
    SchemaVersion,
    Priority,
    Header(String),
}

/// The message lacks a field that the template wants. This message can never be sent with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfilled {
    template: String,
    field: String,
}

impl fmt::Display for Unfilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { template, field } = self;
        write!(
            f,
            "the message has no {field}, which the template {template} wants (give it a default like {{{field}|none}}, \
             then retry the message)"
        )
    }
}

impl std::error::Error for Unfilled {}

impl Template {
    /// Fills the fields in as they are.
    ///
    /// # Errors
    /// [`Unfilled`].
    pub fn fill(&self, delivery: &Delivery) -> Result<String, Unfilled> {
        self.fill_escaped(delivery, |value, out| out.push_str(value))
    }

    /// Fills the fields in, each passed through `escape`, so that a field's content cannot act as the broker's syntax.
    ///
    /// # Errors
    /// [`Unfilled`].
    pub fn fill_escaped(&self, delivery: &Delivery, escape: impl Fn(&str, &mut String)) -> Result<String, Unfilled> {
        self.fill_named(delivery, |_, value, out| escape(value, out))
    }

    /// Like [`Template::fill_escaped`], for brokers where fields differ; `escape` learns the field's name first (`header`
    /// for all headers).
    ///
    /// # Errors
    /// [`Unfilled`].
    pub fn fill_named(
        &self,
        delivery: &Delivery,
        escape: impl Fn(&str, &str, &mut String),
    ) -> Result<String, Unfilled> {
        let mut out = String::with_capacity(self.text.len() + 32);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Field(field, default) => {
                    field.write(delivery, default.as_deref(), &self.text, &escape, &mut out)?;
                }
            }
        }
        Ok(out)
    }

    /// The text itself, if it has no fields.
    pub fn as_fixed(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl Field {
    fn write(
        &self,
        delivery: &Delivery,
        default: Option<&str>,
        template: &str,
        escape: &impl Fn(&str, &str, &mut String),
        out: &mut String,
    ) -> Result<(), Unfilled> {
        let number;
        let value = match self {
            Self::Id => {
                number = delivery.id.to_string();
                Some(number.as_str())
            }
            Self::Topic => Some(delivery.topic.as_str()),
            Self::Key => delivery.key.as_deref(),
            Self::AggregateType => delivery.aggregate_type.as_deref(),
            Self::AggregateId => delivery.aggregate_id.as_deref(),
            Self::SchemaVersion => {
                number = delivery
                    .schema_version
                    .map(|version| version.to_string())
                    .unwrap_or_default();
                delivery.schema_version.map(|_| number.as_str())
            }
            Self::Priority => {
                number = delivery.priority.to_string();
                Some(number.as_str())
            }
            Self::Header(name) => delivery.headers.get(name),
        };
        match value.or(default) {
            Some(value) => {
                escape(self.name(), value, out);
                Ok(())
            }
            None => Err(Unfilled {
                template: template.to_owned(),
                field: self.to_string(),
            }),
        }
    }
}

impl Field {
    fn name(&self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Topic => "topic",
            Self::Key => "key",
            Self::AggregateType => "aggregate_type",
            Self::AggregateId => "aggregate_id",
            Self::SchemaVersion => "schema_version",
            Self::Priority => "priority",
            Self::Header(_) => "header",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            field => f.write_str(field.name()),
        }
    }
}

impl FromStr for Field {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Ok(match text {
            "id" => Self::Id,
            "topic" => Self::Topic,
            "key" => Self::Key,
            "aggregate_type" => Self::AggregateType,
            "aggregate_id" => Self::AggregateId,
            "schema_version" => Self::SchemaVersion,
            "priority" => Self::Priority,
            other => match other.strip_prefix("header:") {
                Some(name) if !name.is_empty() => Self::Header(name.to_owned()),
                _ => {
                    return Err(Error::new(ErrorKind::Invalid, format!("a template has the field {{{other}}}"))
                        .because("messages have no such field")
                        .next_step(
                            "use id, topic, key, aggregate_type, aggregate_id, schema_version, priority or header:NAME; \
                             write {{ for a brace",
                        ));
                }
            },
        })
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
                    format!("the template {text:?} has a lonely {brace}"),
                )
                .next_step("close every {field}; write {{ or }} for a brace"));
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            let (field, default) = match behind[..end].split_once('|') {
                Some((field, default)) => (field, Some(default.to_owned())),
                None => (&behind[..end], None),
            };
            parts.push(Part::Field(field.parse()?, default));
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
