//! The emit suite, and tests specific to sqlx, on MySQL and MariaDB.
#![cfg(feature = "mysql")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod harness;

use sendoff_sqlx as _;
use sendoff_testkit::emit_suite::{message, mysql_url};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{Connection, MySqlConnection, MySqlPool};

sendoff_testkit::emit_suite!(Harness on "mysql", spawned);
harness::implement_harness!(MySql on Mysql, begin, connect);

async fn begin(_: &Harness) -> sqlx::Transaction<'static, sqlx::MySql> {
    let pool: MySqlPool = MySqlPoolOptions::new()
        .max_connections(1)
        .connect_lazy(&mysql_url())
        .unwrap();
    pool.begin().await.unwrap()
}

async fn connect(_: &Harness) -> MySqlConnection {
    MySqlConnection::connect(&mysql_url()).await.unwrap()
}

/// The session belongs to the application: its settings must not change.
#[tokio::test]
async fn the_session_is_left_as_it_was() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let mut connection = connect(&harness).await;
    // The variable has different names on MariaDB and MySQL.
    let session = "SHOW SESSION VARIABLES WHERE variable_name IN ('autocommit', 'time_zone', 'sql_mode', \
                   'tx_isolation', 'transaction_isolation', 'collation_connection')";
    let settings = async |connection: &mut MySqlConnection| {
        let settings = sqlx::query_as::<_, (String, String)>(session).fetch_all(&mut *connection);
        let settings = settings.await.unwrap();
        let database = sqlx::query_scalar::<_, String>("SELECT DATABASE()").fetch_one(connection);
        (settings, database.await.unwrap())
    };
    let before = settings(&mut connection).await;
    let mut tx = connection.begin().await.unwrap();
    let messages = [
        message("a"),
        message("a").idempotency_key("k"),
        message("a").delay(std::time::Duration::from_secs(9)),
    ];
    let _ = outbox.emit_many(&mut tx, messages).await.unwrap();
    let _ = outbox.emit(&mut tx, message("a")).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(settings(&mut connection).await, before);
}
