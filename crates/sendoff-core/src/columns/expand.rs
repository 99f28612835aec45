//! Placeholders for columns in SQL.

use super::{COLUMNS, Column, Kind};
use crate::emit::Dialect;

/// A statement of a store with its column placeholders replaced; [the module](super) lists the placeholders. Other text
/// in braces stays.
pub fn expand(dialect: Dialect, sql: &str) -> String {
    replace(sql, |alias, word| {
        let (word, given) = word.split_once(' ').unwrap_or((word, ""));
        let is_left_out = |column: &&Column| given.strip_prefix("but ") == Some(column.name);
        let all = COLUMNS.iter();
        let plain = |column: &Column| qualified(dialect, alias, column.name);
        let parts: Vec<String> = match word {
            "columns" => all.filter(|column| column.is_copied()).map(plain).collect(),
            "emitted" => all.filter(|column| column.value.is_some()).map(plain).collect(),
            "plain" => all
                .filter(|column| column.is_read() && !is_left_out(column))
                .map(plain)
                .collect(),
            "contents" => all
                .filter(|column| column.is_read() && !is_left_out(column))
                .map(|column| content(dialect, column, plain(column)))
                .collect(),
            "shown" => all
                .filter(|column| column.is_shown())
                .map(|column| shown(dialect, column, plain(column)))
                .collect(),
            "nulls" => all
                .filter(|column| column.is_read())
                .map(|column| null(column, given))
                .collect(),
            "bytes" => return alias.map(bytes),
            _ => return None,
        };
        Some(parts.join(", "))
    })
}

/// Replaces `{word}` and `{alias.word}` with the result of `list`. A word for which `list` returns `None` stays.
pub(super) fn replace(sql: &str, list: impl Fn(Option<&str>, &str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(sql.len() + 512);
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once('{') {
        expanded.push_str(before);
        let found = after.split_once('}').and_then(|(inside, behind)| {
            let (alias, word) = match inside.split_once('.') {
                Some((alias, word)) if alias.chars().all(char::is_alphanumeric) => (Some(alias), word),
                _ => (None, inside),
            };
            Some((list(alias, word)?, behind))
        });
        match found {
            Some((list, behind)) => {
                expanded.push_str(&list);
                rest = behind;
            }
            None => {
                expanded.push('{');
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

/// The name of a column in SQL. `key` is a reserved word of MySQL.
pub(super) fn name(dialect: Dialect, name: &str) -> String {
    match (dialect, name) {
        (Dialect::Mysql, "key") => "`key`".to_owned(),
        _ => name.to_owned(),
    }
}

fn qualified(dialect: Dialect, alias: Option<&str>, column: &str) -> String {
    let name = name(dialect, column);
    match alias {
        Some(alias) => format!("{alias}.{name}"),
        None => name,
    }
}

/// The SQL that reads the content of a column, in the form that [`super::ColumnSource`] expects.
fn content(dialect: Dialect, column: &Column, plain: String) -> String {
    let name = column.name;
    match (dialect, column.kind) {
        (Dialect::Postgres, Kind::Headers) => format!("{plain}::text AS {name}"),
        // Byte by byte, however it is written.
        (Dialect::Mysql, Kind::Id) => format!("CAST({plain} AS BINARY) AS {name}"),
        (Dialect::Mysql, Kind::Time) => format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {plain}) AS {name}"),
        _ => plain,
    }
}

/// The SQL that reads a column for operators. Long texts are cut where the table does not limit them.
fn shown(dialect: Dialect, column: &Column, plain: String) -> String {
    match (dialect, column.kind) {
        (Dialect::Postgres, Kind::Text) => format!("substr({plain}, 1, 1024) AS {}", column.name),
        _ => plain,
    }
}

fn null(column: &Column, given: &str) -> String {
    let name = column.name;
    let given = given.split_whitespace().filter_map(|pair| pair.split_once('='));
    if let Some((_, value)) = given.into_iter().find(|(given, _)| *given == name) {
        return format!("{value} AS {name}");
    }
    let kind = match column.kind {
        Kind::Id => "uuid",
        Kind::Text | Kind::Headers => "text",
        Kind::Bytes => "bytea",
        Kind::Integer => "integer",
        Kind::Small => "smallint",
        Kind::Time | Kind::Schedule => "timestamptz",
    };
    format!("NULL::{kind} AS {name}")
}

fn bytes(alias: &str) -> String {
    let counted = COLUMNS
        .iter()
        .filter(|column| matches!(column.kind, Kind::Text | Kind::Bytes));
    let lengths = counted.map(|column| {
        let plain = qualified(Dialect::Postgres, Some(alias), column.name);
        format!("coalesce(octet_length({plain}), 0)::bigint")
    });
    lengths.collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_gets_its_alias_and_others_stay() {
        let sql = expand(Dialect::Mysql, "SELECT {m.contents}, {lanes} FROM t {");
        assert!(
            sql.starts_with("SELECT CAST(m.id AS BINARY) AS id, m.topic, m.payload, "),
            "{sql}"
        );
        assert!(
            sql.contains("m.`key`, ") && sql.ends_with(" AS created_at, {lanes} FROM t {"),
            "{sql}"
        );
        assert!(!sql.contains("available_at"), "{sql}");
    }

    #[test]
    fn a_statement_may_write_one_column_itself() {
        let sql = expand(Dialect::Sqlite, "{contents but payload}, NULL AS payload");
        assert!(
            sql.starts_with("id, topic, content_type, ") && sql.ends_with("created_at, NULL AS payload"),
            "{sql}"
        );
    }

    #[test]
    fn plain_columns_are_those_of_contents_as_they_are() {
        let sql = expand(Dialect::Mysql, "{t.plain but key}");
        assert!(
            sql.starts_with("t.id, t.topic, t.payload, ") && sql.ends_with("t.created_at"),
            "{sql}"
        );
        assert!(!sql.contains("`key`"), "{sql}");
    }

    #[test]
    fn a_copy_has_the_same_columns_on_both_sides() {
        let sql = expand(Dialect::Postgres, "{columns}|{w.columns}");
        let (into, from) = sql.split_once('|').unwrap();
        assert_eq!(into, from.replace("w.", ""));
        assert!(!into.contains(" key,") && !into.contains("expires_at") && into.contains("available_at"));
    }

    #[test]
    fn a_row_about_the_statement_has_the_types_of_the_others() {
        let sql = expand(Dialect::Postgres, "{nulls topic=pg_current_snapshot()::text}");
        assert!(sql.starts_with("NULL::uuid AS id, pg_current_snapshot()::text AS topic, NULL::bytea AS payload"));
        let columns = expand(Dialect::Postgres, "{contents}").matches(", ").count();
        assert_eq!(sql.matches(", ").count(), columns);
    }
}
