//! What is in the tables, as text.

use mysql_async::Value;
use mysql_async::prelude::Queryable;
use tokio_postgres::SimpleQueryMessage;

use crate::sandbox::{Place, block_on};

/// The rows of a query on the outbox's tables; what is NULL is empty.
#[track_caller]
pub(crate) fn rows(place: &Place, sql: &str) -> Vec<Vec<String>> {
    try_rows(place, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The same of a server that may be gone.
pub(crate) fn try_rows(place: &Place, sql: &str) -> Result<Vec<Vec<String>>, String> {
    match place {
        Place::Postgres { url, schema } => {
            let sql = format!("SET search_path TO {schema}; {sql}");
            block_on(of_postgres(url, &sql)).map_err(|error| error.to_string())
        }
        Place::Mysql { url, schema } => block_on(of_mysql(url, schema, sql)).map_err(|error| error.to_string()),
        Place::Sqlite(_) => panic!("a file does not fail over"),
    }
}

/// The number that a query returns.
#[track_caller]
pub(crate) fn number(place: &Place, sql: &str) -> f64 {
    rows(place, sql)[0][0].parse().unwrap()
}

/// How many rows a table has that fulfil a condition.
#[track_caller]
pub(crate) fn count(place: &Place, table: &str, condition: &str) -> usize {
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
