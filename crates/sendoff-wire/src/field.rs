//! The fields of a message that templates can use.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use sendoff::envelope::rfc3339;
use sendoff::{Error, ErrorKind, Outgoing};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Id,
    Topic,
    Key,
    AggregateType,
    AggregateId,
    SchemaVersion,
    Priority,
    CreatedAt,
    Header(String),
}

impl Field {
    /// The value of the field in a message.
    pub(crate) fn of<'a>(&self, outgoing: &'a Outgoing) -> Option<Cow<'a, str>> {
        match self {
            Self::Id => Some(outgoing.id.to_string().into()),
            Self::Topic => Some(outgoing.topic.as_str().into()),
            Self::Key => outgoing.key.as_deref().map(Cow::from),
            Self::AggregateType => outgoing.aggregate_type.as_deref().map(Cow::from),
            Self::AggregateId => outgoing.aggregate_id.as_deref().map(Cow::from),
            Self::SchemaVersion => outgoing.schema_version.map(|version| version.to_string().into()),
            Self::Priority => Some(outgoing.priority.to_string().into()),
            Self::CreatedAt => Some(rfc3339(outgoing.created_at).into()),
            Self::Header(name) => outgoing.headers.get(name).map(Cow::from),
        }
    }

    /// The field's name; `header` for every header.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Topic => "topic",
            Self::Key => "key",
            Self::AggregateType => "aggregate_type",
            Self::AggregateId => "aggregate_id",
            Self::SchemaVersion => "schema_version",
            Self::Priority => "priority",
            Self::CreatedAt => "created_at",
            Self::Header(_) => "header",
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::SchemaVersion | Self::Priority)
    }
}

/// Splits the text between braces into the field and its default, which follows a `|`.
pub(crate) fn with_default(text: &str) -> (&str, Option<&str>) {
    match text.split_once('|') {
        Some((field, default)) => (field, Some(default)),
        None => (text, None),
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
            "created_at" => Self::CreatedAt,
            other => match other.strip_prefix("header:") {
                Some(name) if !name.is_empty() => Self::Header(name.to_owned()),
                _ => {
                    return Err(Error::new(
                        ErrorKind::Invalid,
                        format!("a template has the unknown field {{{other}}}"),
                    )
                    .next_step(
                        "use id, topic, key, aggregate_type, aggregate_id, schema_version, priority, created_at or \
                             header:NAME; write {{ for a brace",
                    ));
                }
            },
        })
    }
}
