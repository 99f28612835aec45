//! The emit suite on MySQL and MariaDB.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod harness;

use sendoff_sea_orm as _;
use sendoff_testkit::emit_suite::mysql_url;

sendoff_testkit::emit_suite!(Harness on "mysql", spawned);
harness::implement_harness!(MySql on Mysql, |_: &Harness| mysql_url());
