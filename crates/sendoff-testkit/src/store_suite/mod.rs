//! What every store must be able to do: the definition of a store, as tests.
//!
//! A store's own test binary (with `harness = false`) implements [`StoreHarness`] and hands it to [`run`], which makes a
//! test of each case, under its own name, for `cargo test` and for nextest:
//!
//! ```no_run
//! use std::process::ExitCode;
//! use sendoff_testkit::store_suite::{MemoryHarness, run};
//!
//! fn main() -> ExitCode {
//!     run([("memory", MemoryHarness)])
//! }
//! ```
//!
//! Every case gets a database that nobody has used, and no case is ever skipped: one that needs something which the
//! store [declares](Capabilities) not to have checks that the store says so.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a suite fails by panicking"
)]

mod blocked;
mod clean;
mod dead;
mod emit;
mod emit_again;
mod emit_content;
mod emit_once;
mod harness;
mod health;
mod history;
mod kept;
mod lease;
mod lease_crash;
mod manual_relay;
mod memory_harness;
mod migrate;
mod need;
mod operate;
mod operate_act;
mod operate_counts;
mod operate_filter;
mod operate_key;
mod operate_list;
mod operate_pause;
mod overview;
mod read;
mod registry;
mod relay;
mod relay_order;
mod relays;
mod scene;
mod settle;
mod settle_fence;
mod settle_repeated;
mod settle_twice;
mod settle_verdict;
mod straggler;
mod unreadable;
mod work;
mod work_end;
mod work_fence;
mod work_scene;
mod work_storm;

pub use harness::{Capabilities, Database, Setup, StoreHarness, Subject, harness_failed};
pub use memory_harness::MemoryHarness;
pub use registry::run;
