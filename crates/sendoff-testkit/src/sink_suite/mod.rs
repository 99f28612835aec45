//! What every sink must be able to do: the duties of [`sendoff::Sink`], as tests against a real broker.
//!
//! A sink's own test binary (with `harness = false`) implements [`SinkHarness`] and hands it to [`run`], which makes a
//! test of each case, under its own name, for `cargo test` and for nextest:
//!
//! ```ignore
//! fn main() -> std::process::ExitCode {
//!     sendoff_testkit::sink_suite::run([("redis", RedisHarness)])
//! }
//! ```
//!
//! A harness starts a broker, builds sinks that connect to a port of the suite's choice (there is a
//! [`FaultProxy`](crate::FaultProxy) in between), and reads back what consumers have really received. No case is ever
//! skipped: one that needs something which the sink [declares](Capabilities) not to have checks that this is so.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a suite fails by panicking"
)]

mod close;
mod confirm;
mod content;
mod copy;
mod cut;
mod down;
mod excess;
mod harness;
mod message;
mod need;
mod overlap;
mod refuse;
mod registry;
mod relay;
mod scene;
mod secrets;

pub use harness::{Broker, Capabilities, Connection, HeaderText, Received, Setup, SinkHarness};
pub use registry::run;
