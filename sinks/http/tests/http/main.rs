//! The sink against real HTTP servers.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test"
)]

mod answers;
mod authority;
mod bounds;
mod credentials;
mod excess;
mod formats;
mod message;
mod private;
mod server;
mod signatures;
mod silence;
mod templates;
mod tls;
