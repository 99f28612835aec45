//! The emit suite on SQLite.
#![cfg(feature = "sqlite")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod harness;

use sendoff_sqlx as _;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{ConnectOptions, SqliteConnection};

sendoff_testkit::emit_suite!(Harness on "sqlite", spawned);
harness::implement_harness!(Sqlite on Sqlite, begin, connect);

fn options(harness: &Harness) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(harness.file())
        .create_if_missing(true)
}

async fn begin(harness: &Harness) -> sqlx::Transaction<'static, sqlx::Sqlite> {
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_lazy_with(options(harness));
    pool.begin_with("BEGIN IMMEDIATE").await.unwrap()
}

async fn connect(harness: &Harness) -> SqliteConnection {
    options(harness).connect().await.unwrap()
}
