//! HTTP webhooks as a Sendoff sink: a request a message, signed as [Standard Webhooks] says.
//!
//! | what | file |
//! |---|---|
//! | the settings | `config.rs`, `endpoint.rs`, `header.rs` |
//! | a message becomes a request | `encode.rs`, `sign.rs` |
//! | addresses that are never called | `guard.rs` |
//! | how many requests at once | `gates.rs` |
//! | sending | `sink.rs`, `reach.rs` |
//! | what an answer means | `answer.rs`, `retry_after.rs`, `gone.rs`, `error.rs` |
//!
//! A message is delivered when the endpoint answers with 2xx. Redirects are not followed. A request that was sent and
//! not answered is unknown, and is sent again with the same `webhook-id`.
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
