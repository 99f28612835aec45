//! The emit suite, and tests specific to diesel-async, on PostgreSQL.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod harness;

use diesel::sql_types::Text;
use diesel::{QueryableByName, sql_query};
use diesel_async::RunQueryDsl;
use sendoff_diesel_async as _;
use sendoff_testkit::emit_suite::postgres_url;

sendoff_testkit::emit_suite!(Harness on "postgres", spawned);
harness::implement_harness!(AsyncPgConnection on Postgres at postgres_url(), texts);

#[derive(QueryableByName)]
struct Answer {
    #[diesel(sql_type = Text)]
    value: String,
}

async fn texts(sql: &str, mut connection: AsyncPgConnection) -> Vec<String> {
    let sql = format!("SELECT answer.value FROM ({sql}) AS answer (value)");
    let rows: Vec<Answer> = sql_query(sql).load(&mut connection).await.unwrap();
    rows.into_iter().map(|row| row.value).collect()
}

#[tokio::test]
async fn the_statement_is_prepared_once_a_connection() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let mut tx = harness.begin().await;
    for _ in 0..3 {
        let _ = outbox.emit(&mut tx, message("a")).await.unwrap();
    }
    // Sendoff's statements start with a comment.
    let prepared = "SELECT generic_plans::text || custom_plans::text AS value FROM pg_prepared_statements \
                    WHERE statement LIKE '--%'";
    let rows: Vec<Answer> = sql_query(prepared).load(&mut tx).await.unwrap();
    let values: Vec<_> = rows.iter().map(|row| row.value.as_str()).collect();
    assert_eq!(values, ["03"]);
}
