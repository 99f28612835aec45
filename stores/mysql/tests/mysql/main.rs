//! What is MySQL's own; what every store must do is in the conformance suite.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test that is how it fails"
)]

mod conflict;
mod connection;
mod hosts;
mod ids;
mod keys;
mod limits;
mod migrate;
mod reader;
mod rights;
mod scratch;
mod side_lanes;
mod storm;
mod takeover;
mod tls;
mod work;
mod zones;
