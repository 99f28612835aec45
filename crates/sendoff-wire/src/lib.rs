//! What sinks share on the way to a broker.
//!
//! | what | module |
//! |---|---|
//! | how a message is written: raw, JSON envelope, CloudEvents | [`Format`] |
//! | names made out of a message: subjects, routing keys, paths | [`Template`] |
//! | text that protocols would choke on | [`escape`] |
//! | who is on the other side | [`TlsConfig`] |
//! | the connection, made once for all batches | [`Line`] |
//! | how long, in a configuration | [`duration`] |
//! | what nobody may read | [`Secret`], [`Address`] |
#![forbid(unsafe_code)]

mod address;
mod cloudevents;
pub mod duration;
pub mod escape;
mod format;
mod line;
mod secret;
mod template;
mod tls;

pub use address::Address;
pub use format::{Encoded, Format, Names};
pub use line::{Dial, Line, Refusal};
pub use secret::Secret;
pub use template::{Template, Unfilled};
pub use tls::TlsConfig;
