//! What sinks share on the way to a broker.
//!
//! | what | module |
//! |---|---|
//! | how a message is written: raw, JSON envelope, CloudEvents | [`Format`] |
//! | names made out of a message: subjects, routing keys, paths | [`Template`] |
//! | whole bodies made out of a message | [`BodyTemplate`] |
//! | text that protocols would choke on | [`escape`] |
//! | who is on the other side | [`TlsConfig`] |
//! | the connection, made once for all batches | [`Line`] |
//! | a batch that broke its connection, sent again in parts | [`Parts`] |
//! | how long, in a configuration | [`duration`] |
//! | what nobody may read | [`Secret`], [`Address`] |
#![forbid(unsafe_code)]

mod address;
mod body;
mod cloudevents;
pub mod duration;
pub mod escape;
mod field;
mod format;
mod line;
mod parts;
mod secret;
mod template;
mod tls;

pub use address::Address;
pub use body::BodyTemplate;
pub use format::{Encoded, Format, Names};
pub use line::{Dial, Line, Refusal};
pub use parts::{Fate, PartSize, Parts};
pub use secret::Secret;
pub use template::{Template, Unfilled};
pub use tls::TlsConfig;
