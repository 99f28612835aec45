//! The emit statements, as SQL and values that any driver can bind.

use uuid::Uuid;

use super::{Dialect, Names};
use crate::Message;
use crate::columns::{expand_emit, values};

/// A value to bind.
#[derive(Debug, Clone)]
pub enum Param<'a> {
    /// A UUID. On a database without a UUID type: text with hyphens.
    Uuid(Uuid),
    /// Text, or NULL.
    Text(Option<std::borrow::Cow<'a, str>>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A 64-bit integer, or NULL.
    Int(Option<i64>),
    /// An array of UUIDs.
    Uuids(Vec<Uuid>),
    /// An array of text and NULLs.
    Texts(Vec<Option<std::borrow::Cow<'a, str>>>),
    /// An array of bytes.
    Blobs(Vec<&'a [u8]>),
    /// An array of 64-bit integers and NULLs.
    Ints(Vec<Option<i64>>),
}

/// A SQL statement with its values.
#[derive(Debug)]
pub struct Statement<'a> {
    sql: &'a str,
    params: Vec<Param<'a>>,
    returns_ids: bool,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'a str, params: Vec<Param<'a>>, returns_ids: bool) -> Self {
        Self {
            sql,
            params,
            returns_ids,
        }
    }

    /// The SQL text, with the placeholders of the dialect. Every call of a verb has the same text, so that drivers can
    /// cache the statement.
    pub fn sql(&self) -> &'a str {
        self.sql
    }

    /// The values to bind, in order.
    pub fn params(&self) -> &[Param<'a>] {
        &self.params
    }

    /// Whether the statement returns rows with an id in the first column.
    pub fn returns_ids(&self) -> bool {
        self.returns_ids
    }
}

/// The SQL of one dialect, with the names of the tables.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) emit: String,
    pub(super) emit_many: String,
    pub(super) emit_once: String,
}

impl Texts {
    pub(super) fn postgres(names: &Names, table: Table) -> Self {
        let render = |sql| table.render(names, &expand_emit(Dialect::Postgres, sql));
        Self {
            emit: render(include_str!("../../sql/postgres/emit.sql")),
            emit_many: render(include_str!("../../sql/postgres/emit_many.sql")),
            emit_once: render(include_str!("../../sql/postgres/emit_once.sql")),
        }
    }

    pub(super) fn sqlite(names: &Names, table: Table) -> Self {
        let render = |sql| table.render(names, &expand_emit(Dialect::Sqlite, sql));
        Self {
            emit: render(include_str!("../../sql/sqlite/emit.sql")),
            emit_many: render(include_str!("../../sql/sqlite/emit_many.sql")),
            emit_once: render(include_str!("../../sql/sqlite/emit_once.sql")),
        }
    }

    pub(super) fn mysql(names: &Names, table: Table) -> Self {
        let render = |sql| table.render(names, &expand_emit(Dialect::Mysql, sql));
        Self {
            emit: render(include_str!("../../sql/mysql/emit.sql")),
            emit_many: render(include_str!("../../sql/mysql/emit_many.sql")),
            emit_once: render(include_str!("../../sql/mysql/emit_once.sql")),
        }
    }
}

/// The table that the statements write to. Both tables have the producer's columns, a trigger for idempotency keys and
/// schedules, and a routine that returns the holder of a key, so the texts differ only in names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// The table of messages, for the relay.
    Message,
    /// The table of jobs, for workers.
    Job,
}

impl Table {
    fn render(self, names: &Names, sql: &str) -> String {
        match self {
            Self::Message => names.render(sql),
            Self::Job => names.render(
                &sql.replace("outbox_message", "outbox_job")
                    .replace("outbox_emit", "outbox_emit_job"),
            ),
        }
    }
}

/// The values of many messages, one array per placeholder.
pub(super) fn columns(messages: &[Message]) -> Vec<Param<'_>> {
    let mut rows = messages.iter().map(|message| values(message).into_iter());
    let Some(first) = rows.next() else {
        return Vec::new();
    };
    let mut columns: Vec<Param<'_>> = first
        .map(|value| match value {
            Param::Uuid(id) => Param::Uuids(vec![id]),
            Param::Text(text) => Param::Texts(vec![text]),
            Param::Bytes(bytes) => Param::Blobs(vec![bytes]),
            Param::Int(int) => Param::Ints(vec![int]),
            array => array,
        })
        .collect();
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            match (column, value) {
                (Param::Uuids(column), Param::Uuid(id)) => column.push(id),
                (Param::Texts(column), Param::Text(text)) => column.push(text),
                (Param::Blobs(column), Param::Bytes(bytes)) => column.push(bytes),
                (Param::Ints(column), Param::Int(int)) => column.push(int),
                // Every row has the same types: values() creates all of them.
                _ => {}
            }
        }
    }
    columns
}

/// The values of many messages as the JSON text that `emit_many.sql` of SQLite and MySQL reads.
pub(super) fn json_rows(messages: &[Message]) -> String {
    use serde_json::Value;
    let rows = messages.iter().map(|message| {
        values(message)
            .into_iter()
            .map(|value| match value {
                Param::Uuid(id) => Value::from(id.to_string()),
                Param::Text(text) => text.map_or(Value::Null, |text| Value::from(text.into_owned())),
                Param::Bytes(bytes) => Value::from(hex(bytes)),
                Param::Int(int) => int.map_or(Value::Null, Value::from),
                Param::Uuids(_) | Param::Texts(_) | Param::Blobs(_) | Param::Ints(_) => Value::Null,
            })
            .collect::<Value>()
    });
    rows.collect::<Value>().to_string()
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|nibble| DIGITS[usize::from(nibble)] as char)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_messages_become_one_array_a_column() {
        let messages = [
            Message::bytes("a", "x/y", vec![1]),
            Message::bytes("b", "x/y", vec![]).key("k"),
        ];
        let columns = columns(&messages);
        assert_eq!(columns.len(), 15);
        assert!(matches!(&columns[1], Param::Texts(topics) if topics.len() == 2));
        assert!(matches!(&columns[5], Param::Texts(keys) if keys[0].is_none() && keys[1].as_deref() == Some("k")));
    }

    #[test]
    fn jobs_are_written_to_their_own_table_and_nothing_else() {
        let names = Names::new(None, "shop_").unwrap();
        for texts in [Texts::postgres, Texts::sqlite, Texts::mysql].map(|texts| texts(&names, Table::Job)) {
            for sql in [&texts.emit, &texts.emit_many] {
                assert!(sql.contains("INSERT INTO shop_job ("), "{sql}");
            }
            for sql in [&texts.emit, &texts.emit_many, &texts.emit_once] {
                assert!(!sql.contains("shop_message") && !sql.contains("shop_emit("), "{sql}");
            }
        }
    }

    #[test]
    fn binary_payloads_ride_in_json_as_hexadecimal() {
        assert_eq!(hex(&[0, 255, 16]), "00ff10");
    }
}
