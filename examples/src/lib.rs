//! Runnable examples of Sendoff, one per file in `examples/`. This crate only gives each an empty schema or database.
//!
//! ```sh
//! cargo run -p sendoff-examples --example sqlx_sqlite
//! DATABASE_URL=postgres://localhost/shop cargo run -p sendoff-examples --example sqlx_postgres
//! DATABASE_URL=mysql://root@localhost/shop cargo run -p sendoff-examples --example mysql_async
//! ```
#![forbid(unsafe_code)]

#[cfg(doctest)]
mod docs;

use anyhow::{Context, Result};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio_postgres::NoTls;

/// The URL of an empty schema in the database at `DATABASE_URL`, so that an example changes nothing else. An
/// application uses its own URL instead.
///
/// # Errors
/// When `DATABASE_URL` is not set, or the schema cannot be created.
pub async fn empty_schema(name: &str) -> Result<String> {
    let url = std::env::var("DATABASE_URL")
        .context("DATABASE_URL is not set: set it to a PostgreSQL database in which a schema can be created")?;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    let schema = format!("sendoff_example_{name}");
    client
        .batch_execute(&format!(
            "SET client_min_messages = warning; DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}"
        ))
        .await?;
    let separator = if url.contains('?') { '&' } else { '?' };
    Ok(format!("{url}{separator}options=-csearch_path%3D{schema}"))
}

/// The URL of an empty database on the server at `DATABASE_URL`, which is MySQL or MariaDB.
///
/// # Errors
/// When `DATABASE_URL` is not set, or the database cannot be created.
pub async fn empty_mysql_database(name: &str) -> Result<String> {
    let url = std::env::var("DATABASE_URL")
        .context("DATABASE_URL is not set: set it to a MySQL server on which a database can be created")?;
    let (server, _) = url
        .rsplit_once('/')
        .context("DATABASE_URL names no database: write it like mysql://root@localhost/shop")?;
    let database = format!("sendoff_example_{name}");
    let mut conn = Conn::from_url(&url).await?;
    conn.query_drop(format!(
        "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}"
    ))
    .await?;
    conn.disconnect().await?;
    Ok(format!("{server}/{database}"))
}
