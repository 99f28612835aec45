//! HTTP webhooks as a Sendoff sink: one request per message, signed according to [Standard Webhooks].
//!
//! | what | file |
//! |---|---|
//! | the settings | `config.rs`, `endpoint.rs`, `header.rs` |
//! | encoding and signing a request | `encode.rs`, `sign.rs` |
//! | blocked addresses | `guard.rs` |
//! | limits on concurrent requests | `gates.rs` |
//! | sending | `sink.rs`, `reach.rs` |
//! | outcomes of answers | `answer.rs`, `retry_after.rs`, `gone.rs`, `error.rs` |
//!
//! A message is delivered when the endpoint answers with 2xx. Redirects are not followed. The outcome of a request
//! without an answer is unknown; it is sent again with the same `webhook-id`.
//!
//! [Standard Webhooks]: https://www.standardwebhooks.com
#![forbid(unsafe_code)]

mod answer;
mod config;
mod encode;
mod endpoint;
mod error;
mod gates;
mod gone;
mod guard;
mod header;
mod reach;
mod retry_after;
mod sign;
mod sink;

pub use config::{HttpConfig, Method};
pub use endpoint::Endpoint;
pub use header::HeaderTemplate;
pub use sink::HttpSink;
