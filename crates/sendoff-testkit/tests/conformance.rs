//! The store conformance suite on the store in memory: the suite must pass where the promises are easiest to keep.

use std::process::ExitCode;

use sendoff_testkit::store_suite::{MemoryHarness, run};

fn main() -> ExitCode {
    run([("memory", MemoryHarness)])
}
