//! SQL on the database of a project, of any kind.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;

use crate::sandbox::{block_on, connect};

/// Runs a statement without parameters.
pub(crate) fn run(database: &str, sql: &str) {
    if let Some(path) = database.strip_prefix("sqlite:") {
        return open(path).execute_batch(sql).unwrap();
    }
    block_on(async {
        if database.starts_with("mysql:") {
            let mut conn = mysql_async::Conn::from_url(database).await.unwrap();
            conn.query_drop(sql).await.unwrap();
            conn.disconnect().await.unwrap();
        } else {
            connect(database).await.batch_execute(sql).await.unwrap();
        }
    });
}

/// The first two columns of the rows, as text.
pub(crate) fn pairs(database: &str, sql: &str) -> Vec<(String, String)> {
    if let Some(path) = database.strip_prefix("sqlite:") {
        let connection = open(path);
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        return rows.map(Result::unwrap).collect();
    }
    block_on(async {
        if database.starts_with("mysql:") {
            let mut conn = mysql_async::Conn::from_url(database).await.unwrap();
            let rows = conn.query(sql).await.unwrap();
            conn.disconnect().await.unwrap();
            return rows;
        }
        let rows = connect(database).await.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    })
}

/// Id, name, args, kwargs and options of a task.
pub(crate) type Row = [String; 5];

/// Tasks in the table of django-celery-outbox, as any other program would write them.
pub(crate) fn insert(database: &str, rows: &[Row]) {
    let insert = |now: &str, values: &str| {
        format!(
            "INSERT INTO celery_outbox (created_at, retries, task_id, task_name, args, kwargs, options, schema_version)
             VALUES ({now}, 0, {values}, 1)"
        )
    };
    if let Some(path) = database.strip_prefix("sqlite:") {
        let sql = insert("strftime('%Y-%m-%d %H:%M:%f', 'now')", "?1, ?2, ?3, ?4, ?5");
        let connection = open(path);
        let mut statement = connection.prepare(&sql).unwrap();
        rows.iter().for_each(|row| {
            statement.execute(rusqlite::params_from_iter(row)).unwrap();
        });
        return;
    }
    block_on(async {
        if database.starts_with("mysql:") {
            let mut conn = mysql_async::Conn::from_url(database).await.unwrap();
            let sql = insert("UTC_TIMESTAMP(6)", "?, ?, ?, ?, ?");
            let rows = rows
                .iter()
                .map(|[id, name, args, kwargs, options]| (id, name, args, kwargs, options));
            conn.exec_batch(sql, rows).await.unwrap();
            conn.disconnect().await.unwrap();
        } else {
            let json = "::text::jsonb";
            let sql = insert("now()", &format!("$1, $2, $3{json}, $4{json}, $5{json}"));
            let client = connect(database).await;
            for [id, name, args, kwargs, options] in rows {
                client.execute(&sql, &[id, name, args, kwargs, options]).await.unwrap();
            }
        }
    });
}

fn open(path: &str) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection
}
