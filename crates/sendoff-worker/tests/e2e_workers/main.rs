//! Eight worker processes that are killed with SIGKILL and stopped at random finish every job, and none finishes a job
//! after it has lost its lease: on every database.
//!
//! Each process writes down what it was handed and what it was told about its marks, before it goes on; a file outlives
//! the process that wrote it. In the end these journals are held against the rows of the database, which keep the number
//! of the hand-out that finished them.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and prints its seed"
)]

mod base;
mod child;
mod journal;
mod process;
mod storm;

use std::process::ExitCode;

use base::Base;
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if let Some(order) = child::Order::from_env() {
        child::work(order);
    }
    let trial = |name: &str, base: fn() -> Base| {
        Trial::test(name, move || {
            storm::every_job_is_finished_once_by_a_worker_that_holds_it(&base());
            Ok(())
        })
    };
    let trials = vec![
        trial("killed_workers_on_postgres", Base::postgres),
        trial("killed_workers_on_mysql", Base::mysql),
        trial("killed_workers_on_sqlite", Base::sqlite),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
