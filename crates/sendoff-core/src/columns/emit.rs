//! The columns in emit statements: what is written, and from which values.

use std::time::SystemTime;

use super::expand::{name, replace};
use super::{COLUMNS, Column, Kind};
use crate::Message;
use crate::emit::{Dialect, Param};
use crate::message::Schedule;

/// A column that producers set, with the index of its parameter, from 0. A schedule also uses the next parameter, for
/// its delay.
struct Emitted {
    column: &'static Column,
    place: usize,
}

fn emitted() -> impl Iterator<Item = Emitted> {
    let columns = COLUMNS.iter().filter(|column| column.value.is_some());
    columns.scan(0, |next, column| {
        let place = *next;
        *next += if column.kind == Kind::Schedule { 2 } else { 1 };
        Some(Emitted { column, place })
    })
}

/// The values of one message, in the order of the parameters.
pub(crate) fn values(message: &Message) -> Vec<Param<'_>> {
    let mut values = Vec::with_capacity(COLUMNS.len() + 1);
    for column in COLUMNS {
        values.extend(column.value.map(|value| value(message)));
        if column.kind == Kind::Schedule {
            values.push(Param::Int(delay(message)));
        }
    }
    values
}

/// The point in time for which the message is scheduled.
pub(super) fn at(message: &Message) -> Option<SystemTime> {
    match message.available {
        Some(Schedule::At(at)) => Some(at),
        Some(Schedule::In(_)) | None => None,
    }
}

fn delay(message: &Message) -> Option<i64> {
    match message.available {
        Some(Schedule::In(delay)) => Some(i64::try_from(delay.as_micros()).unwrap_or(i64::MAX)),
        Some(Schedule::At(_)) | None => None,
    }
}

/// An emit statement with the columns in it.
pub(crate) fn expand_emit(dialect: Dialect, sql: &str) -> String {
    replace(sql, |alias, word| {
        let parts: Vec<String> = match word {
            "columns" => written(dialect, alias).map(|e| name(dialect, e.column.name)).collect(),
            "values" => written(dialect, alias).map(|e| value(dialect, alias, &e)).collect(),
            // PostgreSQL: by name, because the function has another order.
            "arguments" => emitted()
                .map(|e| format!("{} => {}", e.column.name, value(dialect, alias, &e)))
                .collect(),
            "arrays" => parameters()
                .map(|(place, kind, _)| format!("${}::{}[]", place + 1, sent(kind)))
                .collect(),
            "parameters" => parameters().map(|(_, _, name)| name.to_owned()).collect(),
            // MySQL: the columns of a JSON_TABLE.
            "table" => written(dialect, Some(""))
                .map(|e| {
                    format!(
                        "{} {} PATH '$[{}]'",
                        name(dialect, e.column.name),
                        in_json(e.column.kind),
                        e.place
                    )
                })
                .collect(),
            _ => return None,
        };
        Some(parts.join(", "))
    })
}

/// What a statement writes. MySQL's statement for many messages, which reads them from the table `of`, has no messages
/// with an idempotency key or a schedule.
fn written(dialect: Dialect, of: Option<&str>) -> impl Iterator<Item = Emitted> {
    let is_plain = dialect == Dialect::Mysql && of.is_some();
    emitted().filter(move |e| !is_plain || (e.column.kind != Kind::Schedule && e.column.name != "idempotency_key"))
}

/// All parameters: place, kind, name.
fn parameters() -> impl Iterator<Item = (usize, Kind, &'static str)> {
    emitted().flat_map(|Emitted { column, place }| {
        let delay = (column.kind == Kind::Schedule).then_some((place + 1, column.kind, "delay"));
        std::iter::once((place, column.kind, column.name)).chain(delay)
    })
}

/// The index of a parameter among the [values](crate::emit::Statement::params) of an emit statement for PostgreSQL.
/// `name` is the name of its column, or `delay`. For adapters that inspect a statement instead of sending it.
pub fn parameter(name: &str) -> Option<usize> {
    parameters()
        .find(|(_, _, found)| *found == name)
        .map(|(place, ..)| place)
}

/// The type of a parameter on PostgreSQL.
fn sent(kind: Kind) -> &'static str {
    match kind {
        Kind::Id => "uuid",
        Kind::Text | Kind::Headers => "text",
        Kind::Bytes => "bytea",
        Kind::Integer | Kind::Small | Kind::Time | Kind::Schedule => "bigint",
    }
}

/// The type of a value in JSON on MySQL. Bytes are in hexadecimal, because JSON has none.
fn in_json(kind: Kind) -> &'static str {
    match kind {
        Kind::Id => "CHAR(36)",
        Kind::Text => "VARCHAR(1024) CHARACTER SET utf8mb4",
        Kind::Headers => "LONGTEXT CHARACTER SET utf8mb4",
        Kind::Bytes => "LONGTEXT",
        Kind::Integer | Kind::Small | Kind::Time | Kind::Schedule => "BIGINT",
    }
}

/// The value of a column: a parameter, or a field of one of many messages.
fn value(dialect: Dialect, of: Option<&str>, Emitted { column, place }: &Emitted) -> String {
    let (kind, place) = (column.kind, *place);
    let given = |place: usize, name: &str| match (dialect, of) {
        (Dialect::Postgres, None) => format!("${}::{}", place + 1, sent(kind)),
        (Dialect::Sqlite, None) => format!("?{}", place + 1),
        (Dialect::Mysql, None) => "?".to_owned(),
        (Dialect::Sqlite, Some(of)) => format!("({of} ->> {place})"),
        (Dialect::Postgres | Dialect::Mysql, Some(of)) => format!("{of}.{}", self::name(dialect, name)),
    };
    let plain = given(place, column.name);
    match (dialect, kind) {
        (Dialect::Postgres, Kind::Headers) => format!("{plain}::jsonb"),
        (Dialect::Postgres, Kind::Integer) => format!("{plain}::integer"),
        (Dialect::Postgres, Kind::Small) => format!("{plain}::smallint"),
        (Dialect::Postgres, Kind::Time) => postgres_time(&plain),
        (Dialect::Postgres, Kind::Schedule) => format!(
            "coalesce({}, now() + {} * interval '1 microsecond')",
            postgres_time(&plain),
            given(place + 1, "delay")
        ),
        (Dialect::Sqlite, Kind::Bytes) if of.is_some() => format!("unhex{plain}"),
        (Dialect::Sqlite, Kind::Schedule) => format!(
            "coalesce({plain}, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) + {})",
            given(place + 1, "delay")
        ),
        (Dialect::Mysql, Kind::Bytes) if of.is_some() => format!("UNHEX({plain})"),
        (Dialect::Mysql, Kind::Time) => mysql_time(&plain),
        (Dialect::Mysql, Kind::Schedule) => format!(
            "coalesce({}, TIMESTAMPADD(MICROSECOND, LEAST({}, 31536000000000000), UTC_TIMESTAMP(6)))",
            mysql_time(&plain),
            given(place + 1, "delay")
        ),
        _ => plain,
    }
}

fn postgres_time(micros: &str) -> String {
    format!("timestamptz 'epoch' + {micros} * interval '1 microsecond'")
}

/// Converts a point in time to MySQL's type. It is limited to the range of the column: beyond the range, MySQL would
/// store NULL.
fn mysql_time(micros: &str) -> String {
    format!(
        "TIMESTAMPADD(MICROSECOND, GREATEST(LEAST({micros}, 253370764800000000), 0), \
         TIMESTAMP'1970-01-01 00:00:00.000000')"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_a_value_and_a_place() {
        let message = Message::bytes("a", "x/y", vec![1]);
        assert_eq!(values(&message).len(), parameters().count());
        let places: Vec<usize> = parameters().map(|(place, ..)| place).collect();
        assert_eq!(places, (0..places.len()).collect::<Vec<_>>());
        assert_eq!(
            (parameter("id"), parameter("delay"), parameter("expires_at")),
            (Some(0), Some(11), Some(12))
        );
        assert_eq!((parameter("seq"), parameter("created_at")), (None, None));
    }

    #[test]
    fn a_schedule_is_written_out_of_two_parameters() {
        let sql = expand_emit(Dialect::Sqlite, "INSERT INTO t ({columns}) VALUES ({values})");
        assert!(sql.contains("available_at, expires_at, priority"), "{sql}");
        assert!(
            sql.contains("coalesce(?11, ") && sql.contains(" + ?12), ?13, ?14"),
            "{sql}"
        );
        let sql = expand_emit(Dialect::Postgres, "VALUES ({values})");
        assert!(sql.contains("$9::bigint::integer, $10::text, coalesce("), "{sql}");
    }

    #[test]
    fn many_messages_of_mysql_have_no_key_and_no_schedule() {
        let sql = expand_emit(Dialect::Mysql, "INSERT ({m.columns}) SELECT {m.values} FROM ({table})");
        assert!(
            !sql.contains("idempotency_key") && !sql.contains("available_at"),
            "{sql}"
        );
        assert!(sql.contains("expires_at BIGINT PATH '$[12]'"), "{sql}");
    }
}
