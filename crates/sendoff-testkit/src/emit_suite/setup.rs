//! What every case begins with.

use std::future::Future;

use sendoff::Message;
use sendoff::emit::Names;

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

/// Runs a case.
pub fn block_on<T>(case: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(case)
}

/// A message with a payload.
pub fn message(topic: &str) -> Message {
    Message::json(topic, &1).unwrap()
}

/// Names of tables that are not there.
pub(super) fn nowhere() -> Names {
    Names::new(None, "nowhere_").unwrap()
}
