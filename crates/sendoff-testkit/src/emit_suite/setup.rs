//! What every case begins with.

use std::future::Future;

use sendoff::emit::Names;
use sendoff::{Message, Outbox, Uuid};

use super::EmitHarness;

/// The server that the tests use.
pub fn postgres_url() -> String {
    std::env::var("SENDOFF_TEST_POSTGRES_URL")
        .expect("SENDOFF_TEST_POSTGRES_URL is not set: run the tests with `cargo xtask test`")
}

/// The MySQL or MariaDB server that the tests use.
pub fn mysql_url() -> String {
    std::env::var("SENDOFF_TEST_MYSQL_URL")
        .expect("SENDOFF_TEST_MYSQL_URL is not set: run the tests with `cargo xtask test`")
}

/// Names in a schema that nobody has used yet.
pub fn fresh_names() -> Names {
    let random = Uuid::new_v4().simple().to_string();
    Names::new(Some(&format!("t_{}", &random[..20])), Names::PREFIX).expect("a valid name")
}

/// Runs a case.
pub fn block_on<T>(case: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(case)
}

pub(super) fn message(topic: &str) -> Message {
    Message::json(topic, &1).unwrap()
}

pub(super) fn outbox<H: EmitHarness>(harness: &H) -> Outbox {
    Outbox::builder().names(harness.names().clone()).build()
}

/// Names of tables that are not there.
pub(super) fn nowhere() -> Names {
    Names::new(None, "nowhere_").unwrap()
}
