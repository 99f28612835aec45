//! The emit suite, and tests specific to diesel-async, on MySQL and MariaDB.
#![cfg(feature = "mysql")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod harness;

use diesel::dsl::sql;
use diesel::sql_types::Text;
use diesel_async::RunQueryDsl;
use sendoff_diesel_async as _;
use sendoff_testkit::emit_suite::mysql_url;

sendoff_testkit::emit_suite!(Harness on "mysql", spawned);
harness::implement_harness!(AsyncMysqlConnection on Mysql at mysql_url(), texts);

async fn texts(text: &str, mut connection: AsyncMysqlConnection) -> Vec<String> {
    sql::<Text>(text).load(&mut connection).await.unwrap()
}
