//! The sink against real HTTP servers.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test that is how it fails"
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
