//! The columns of a message. They are declared here and nowhere else: the SQL texts have placeholders for them, and rows
//! are read by the names of their columns.
//!
//! A placeholder may have the alias of a table: `{m.columns}`. [`expand`] replaces those of the stores:
//!
//! | placeholder | becomes | used to |
//! |---|---|---|
//! | `{columns}` | the columns that a copy of a row takes over: all but `lane`, `seq`, `key` and `expires_at`, which some copies change | move a message to another table |
//! | `{contents}`, `{contents but payload}` | what a reader needs, each under the name of its column; without the one that the statement writes itself | read messages, claim jobs |
//! | `{plain}`, `{plain but key}` | the columns of `{contents}` as the table has them | select rows for a statement around them |
//! | `{shown}` | what an operator is shown, without headers, payload and times, which each statement limits | list messages and jobs |
//! | `{emitted}` | the columns that a producer sets | grant rights |
//! | `{nulls a=x}` | a row without contents (PostgreSQL): NULL in each column of `{contents}`, and `x` in the column `a` | return a row about the statement |
//! | `{o.bytes}`, always with an alias | the sum of the lengths of texts and payload (PostgreSQL) | ask for sizes |
//!
//! The placeholders of emit statements are `{columns}`, `{values}`, `{arrays}`, `{parameters}`, `{arguments}` and
//! `{table}`: see the texts in `sql/`.

mod contents;
mod emit;
mod expand;
mod position;
mod source;
mod time;

pub(crate) use contents::Contents;
pub use emit::parameter;
pub(crate) use emit::{expand_emit, values};
pub use expand::expand;
pub use position::position;
pub use source::ColumnSource;
pub(crate) use source::{Unreadable, integer, unreadable};
pub use time::{micros, time_at};

use crate::Message;
use crate::emit::Param;

/// The kind of value in a column. It decides the type of the column in each dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Id,
    Text,
    /// A JSON object of strings.
    Headers,
    Bytes,
    /// An integer of 32 bits.
    Integer,
    /// An integer of 16 bits.
    Small,
    Time,
    /// A time that may be given as a delay, in a parameter of its own. Only the database uses it: readers do not need
    /// it.
    Schedule,
}

/// A column of a message.
struct Column {
    name: &'static str,
    kind: Kind,
    /// The column's value in a message; `None` if the database sets the value.
    value: Option<fn(&Message) -> Param<'_>>,
}

const fn emitted(name: &'static str, kind: Kind, value: fn(&Message) -> Param<'_>) -> Column {
    Column {
        name,
        kind,
        value: Some(value),
    }
}

/// Every column that a message has in every table, in the order of the parameters of emit statements. A new column
/// comes last. `lane` and `seq` are not in this list: they locate a message and are not part of it.
static COLUMNS: &[Column] = &[
    emitted("id", Kind::Id, |message| Param::Uuid(message.id)),
    emitted("topic", Kind::Text, |message| {
        Param::Text(Some(message.topic.as_str().into()))
    }),
    emitted("payload", Kind::Bytes, |message| Param::Bytes(&message.payload)),
    emitted("content_type", Kind::Text, |message| optional(&message.content_type)),
    emitted("headers", Kind::Headers, |message| {
        Param::Text(message.headers.to_json().map(Into::into))
    }),
    emitted("key", Kind::Text, |message| optional(&message.key)),
    emitted("aggregate_type", Kind::Text, |message| {
        optional(&message.aggregate_type)
    }),
    emitted("aggregate_id", Kind::Text, |message| optional(&message.aggregate_id)),
    emitted("schema_version", Kind::Integer, |message| {
        Param::Int(message.schema_version.map(i64::from))
    }),
    emitted("idempotency_key", Kind::Text, |message| {
        optional(&message.idempotency_key)
    }),
    emitted("available_at", Kind::Schedule, |message| {
        Param::Int(emit::at(message).map(micros))
    }),
    emitted("expires_at", Kind::Time, |message| {
        Param::Int(message.expires_at.map(micros))
    }),
    emitted("priority", Kind::Small, |message| {
        Param::Int(Some(i64::from(message.priority)))
    }),
    emitted("max_attempts", Kind::Small, |message| {
        Param::Int(message.max_attempts.map(i64::from))
    }),
    Column {
        name: "created_at",
        kind: Kind::Time,
        value: None,
    },
];

position::positions! {
    /// The positions of the columns of `{contents}` in the rows of one statement.
    Positions {
        id, topic, payload, content_type, headers, key, aggregate_type, aggregate_id, schema_version, idempotency_key,
        expires_at, priority, max_attempts, created_at,
    }
}

position::positions! {
    /// The positions of the columns that operators see in the rows of one statement.
    ShownPositions {
        status, id, topic, sink, key, lane, seq, aggregate_type, aggregate_id, schema_version, idempotency_key, content_type,
        headers, has_headers, payload, payload_bytes, priority, attempts, max_attempts, last_error, detail, history,
        created_at, due_at, expires_at, ended_at,
    }
}

fn optional(value: &Option<String>) -> Param<'_> {
    Param::Text(value.as_deref().map(Into::into))
}

impl Column {
    /// Whether a copy of a row in another table has the same value in this column.
    fn is_copied(&self) -> bool {
        !matches!(self.name, "key" | "expires_at")
    }

    /// Whether a reader needs the column.
    fn is_read(&self) -> bool {
        self.kind != Kind::Schedule
    }

    /// Whether operators see the column unchanged.
    fn is_shown(&self) -> bool {
        matches!(self.kind, Kind::Id | Kind::Text | Kind::Integer | Kind::Small)
    }
}
