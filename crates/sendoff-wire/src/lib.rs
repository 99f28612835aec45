//! Code that sinks share.
//!
//! | what | module |
//! |---|---|
//! | formats of a message: raw, JSON envelope, CloudEvents | [`Format`] |
//! | names built from a message: subjects, routing keys, paths | [`Template`] |
//! | whole bodies built from a message | [`BodyTemplate`] |
//! | escaping of text that protocols cannot carry | [`escape`] |
//! | TLS settings | [`TlsConfig`] |
//! | the connection, opened once for all batches | [`Connections`] |
//! | sending a batch again in parts after it broke its connection | [`Parts`] |
//! | defaults and durations in a configuration | [`defaults`], [`duration`] |
//! | values that are never printed | [`Secret`], [`Address`] |
#![forbid(unsafe_code)]

mod address;
mod body;
mod cloudevents;
mod connections;
pub mod defaults;
pub mod duration;
pub mod escape;
mod field;
mod format;
mod parts;
mod secret;
mod template;
mod tls;

pub use address::Address;
pub use body::BodyTemplate;
pub use connections::{Connect, Connections, Refusal};
pub use format::{Encoded, Format, Names};
pub use parts::{Fate, PartSize, Parts};
pub use secret::Secret;
pub use template::{Template, Unfilled};
pub use tls::TlsConfig;
