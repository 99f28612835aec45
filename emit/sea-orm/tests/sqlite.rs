//! The emit suite on SQLite.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod harness;

use sendoff_sea_orm as _;

sendoff_testkit::emit_suite!(Harness on "sqlite", spawned);
harness::implement_harness!(Sqlite on Sqlite, |harness: &Harness| format!(
    "sqlite://{}?mode=rwc",
    harness.file().display()
));
