//! The emit suite, and tests specific to sea-orm, on PostgreSQL.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod harness;

use sendoff_sea_orm as _;
use sendoff_testkit::emit_suite::{message, postgres_url};

sendoff_testkit::emit_suite!(Harness on "postgres", spawned);
harness::implement_harness!(Postgres on Postgres, |_: &Harness| postgres_url());

/// A statement is prepared once per connection, with the types of its first values.
#[tokio::test]
async fn one_connection_takes_many_messages_with_and_without_what_is_optional() {
    let harness = fresh().await;
    let outbox = harness.outbox();
    let tx = harness.begin().await;
    let bare = || vec![message("a"), message("a")];
    let full = || {
        bare()
            .into_iter()
            .map(|message| message.key("k").header("h", "v").max_attempts(3))
    };
    for _ in 0..2 {
        let _ = outbox.emit_many(&tx, bare()).await.unwrap();
        let _ = outbox.emit_many(&tx, full()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let keys = harness.sql("SELECT key FROM outbox_message WHERE key IS NOT NULL AND max_attempts = 3");
    assert_eq!(harness.texts(&keys).await, ["k"; 4]);
}
