//! The snippets in docs/sql.md run exactly as they stand there, except the one in Go.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use sendoff::emit::Names;
use sendoff::store::MigrateStore;
use sendoff::stores::postgres::{PostgresConfig, PostgresStore};
use tokio_postgres::{Client, NoTls};

const DOC: &str = include_str!("../../docs/sql.md");

/// The first code block below this heading.
fn block(heading: &str) -> &'static str {
    let section = DOC.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("docs/sql.md has no section {heading}"));
    let code = section
        .split("```")
        .nth(1)
        .unwrap_or_else(|| panic!("the section {heading} has no block"));
    code.split_once('\n').map_or(code, |(_language, code)| code)
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run the tests with `cargo xtask test`"))
}

/// An empty schema with the outbox and the page's table of orders, and a URL whose search path is that schema.
async fn schema(name: &str) -> (Client, String) {
    let url = env("SENDOFF_TEST_POSTGRES_URL");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let fresh = format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}; SET search_path = {name}");
    client.batch_execute(&fresh).await.unwrap();
    client.batch_execute(block("The table of the examples")).await.unwrap();
    let config = PostgresConfig::new(url.clone()).names(Names::new(Some(name), Names::PREFIX).unwrap());
    PostgresStore::new(config).unwrap().migrate().await.unwrap();
    (client, format!("{url}?options=-c%20search_path%3D{name}"))
}

fn run(command: &mut Command, url: &str) {
    let output = command.env("DATABASE_URL", url).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !errors.contains("ERROR"),
        "{command:?}: {errors}"
    );
}

/// A file with this text.
fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Payloads and keys, in the order they were emitted.
async fn emitted(client: &Client) -> Vec<(String, String)> {
    let sql = "SELECT convert_from(payload, 'UTF8'), key FROM outbox_message ORDER BY seq";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn orders(client: &Client) -> i64 {
    client
        .query_one("SELECT count(*) FROM orders", &[])
        .await
        .unwrap()
        .get(0)
}

fn pair(payload: &str, key: &str) -> (String, String) {
    (payload.to_owned(), key.to_owned())
}

fn run_psql(folder: &Path, url: &str) {
    let script = file(folder, "emit.sql", block("psql"));
    let psql = Path::new(&env("SENDOFF_TEST_PG_BIN")).join("psql");
    run(
        Command::new(psql)
            .args(["-v", "ON_ERROR_STOP=1", "-q", "-d", url, "-f"])
            .arg(script),
        url,
    );
}

fn run_python(folder: &Path, url: &str) {
    let script = file(folder, "emit.py", block("Python"));
    run(Command::new(env("SENDOFF_TEST_PYTHON")).arg(script), url);
}

fn run_node(folder: &Path, url: &str) {
    let script = file(folder, "emit.cjs", block("Node.js"));
    run(
        Command::new("node")
            .arg(script)
            .env("NODE_PATH", env("SENDOFF_TEST_NODE_PATH")),
        url,
    );
}

#[tokio::test]
async fn the_snippets_run_one_after_the_other_on_one_database() {
    let (client, url) = schema("sql_docs_all").await;
    let folder = tempfile::tempdir().unwrap();
    run_psql(folder.path(), &url);
    run_python(folder.path(), &url);
    run_node(folder.path(), &url);
    assert_eq!((emitted(&client).await.len(), orders(&client).await), (5, 5));
}

#[tokio::test]
async fn the_snippet_for_psql_emits() {
    let (client, url) = schema("sql_docs_psql").await;
    let folder = tempfile::tempdir().unwrap();
    run_psql(folder.path(), &url);
    let payloads = [
        r#"{"order": 1, "total": "12.50"}"#,
        r#"{"order": 2, "file": "orders\\2.pdf"}"#,
        "order 3",
    ];
    assert_eq!(
        emitted(&client).await,
        payloads.map(|payload| pair(payload, "customer-7"))
    );
    assert_eq!(orders(&client).await, 3);
}

#[tokio::test]
async fn the_snippet_for_python_emits_once() {
    let (client, url) = schema("sql_docs_python").await;
    let folder = tempfile::tempdir().unwrap();
    run_python(folder.path(), &url);
    assert_eq!(
        emitted(&client).await,
        [pair(r#"{"order": 4, "total": "20.00"}"#, "customer-8")]
    );
    // The order is gone, its idempotency key is not.
    client.batch_execute("DELETE FROM orders").await.unwrap();
    run_python(folder.path(), &url);
    assert_eq!((emitted(&client).await.len(), orders(&client).await), (1, 1));
}

#[tokio::test]
async fn the_snippet_for_node_emits() {
    let (client, url) = schema("sql_docs_node").await;
    let folder = tempfile::tempdir().unwrap();
    run_node(folder.path(), &url);
    assert_eq!(
        emitted(&client).await,
        [pair(r#"{"order":5,"total":"5.00"}"#, "customer-9")]
    );
    let headers: String = client
        .query_one("SELECT headers::text FROM outbox_message", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(headers, r#"{"tenant": "acme"}"#);
}

#[test]
fn the_snippet_for_sqlite_emits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.db");
    let store = sendoff::stores::sqlite::SqliteStore::new(sendoff::stores::sqlite::SqliteConfig::new(&path)).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(store.migrate()).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(block("SQLite")).unwrap();
    let payload: Vec<u8> = connection
        .query_row("SELECT payload FROM outbox_message", [], |row| row.get(0))
        .unwrap();
    assert_eq!(payload, br#"{"order": 1}"#);
}
