//! The contents of the tables, as text.

use mysql_async::Value;
use mysql_async::prelude::Queryable;
use tokio_postgres::SimpleQueryMessage;

use crate::sandbox::{TestDatabase, block_on};

/// The rows of a query on the outbox's tables; NULL is empty.
#[track_caller]
pub(crate) fn rows(place: &TestDatabase, sql: &str) -> Vec<Vec<String>> {
    try_rows(place, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The same of a server that may be gone.
pub(crate) fn try_rows(place: &TestDatabase, sql: &str) -> Result<Vec<Vec<String>>, String> {
    match place {
        TestDatabase::Postgres { url, schema } => {
            let sql = format!("SET search_path TO {schema}; {sql}");
            block_on(of_postgres(url, &sql)).map_err(|error| error.to_string())
        }
        TestDatabase::Mysql { url, schema } => block_on(of_mysql(url, schema, sql)).map_err(|error| error.to_string()),
        TestDatabase::Sqlite(_) => panic!("a file does not fail over"),
    }
}

/// The number returned by a query.
#[track_caller]
pub(crate) fn number(place: &TestDatabase, sql: &str) -> f64 {
    rows(place, sql)[0][0].parse().unwrap()
}

/// The number of rows of a table that match a condition.
#[track_caller]
pub(crate) fn count(place: &TestDatabase, table: &str, condition: &str) -> usize {
    let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
    rows(place, &sql)[0][0].parse().unwrap()
}

async fn of_postgres(url: &str, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let found = client.simple_query(sql).await?;
    let rows = found.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(
            (0..row.len())
                .map(|at| row.get(at).unwrap_or_default().to_owned())
                .collect(),
        ),
        _ => None,
    });
    Ok(rows.collect())
}

async fn of_mysql(url: &str, schema: &str, sql: &str) -> Result<Vec<Vec<String>>, mysql_async::Error> {
    let mut conn = mysql_async::Conn::from_url(url).await?;
    conn.query_drop(format!("USE {schema}")).await?;
    let found: Vec<mysql_async::Row> = conn.query(sql).await?;
    conn.disconnect().await?;
    let text = |value: Value| match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::NULL => String::new(),
        other => other.as_sql(true),
    };
    Ok(found
        .into_iter()
        .map(|row| row.unwrap().into_iter().map(text).collect())
        .collect())
}
