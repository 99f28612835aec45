//! What is PostgreSQL's own; what every store must do is in the conformance suite.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test that is how it fails"
)]

mod basics;
mod connection;
mod large;
mod lease;
mod migrate;
mod operate;
mod operator;
mod pooler;
mod reader;
mod retention;
mod roles;
mod scratch;
mod search_path;
mod settle;
mod tls;
mod wake;
mod work;
