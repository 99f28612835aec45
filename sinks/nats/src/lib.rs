//! NATS as a Sendoff sink.
//!
//! - **JetStream** (the default): a message is delivered when the stream has acknowledged it. Its id travels as
//!   `Nats-Msg-Id`, so a copy that comes within the stream's duplicate window is not stored twice; such an
//!   acknowledgement counts as delivered. A batch is sent without waiting in between, then its acknowledgements are
//!   awaited together.
//! - **Core NATS**, by explicit choice (`mode = "core"`): a message is delivered when the server has read it. Who is not
//!   subscribed at that moment never gets it.
//!
//! The subject is a template; what comes out of a message's fields cannot act as a wildcard or as another token, see
//! [`NatsConfig::subject`].
#![forbid(unsafe_code)]

mod acks;
mod config;
mod core;
mod dial;
mod encode;
mod error;
mod jetstream;
mod link;
mod lookup;
mod servers;
mod sink;
mod subject;

pub use config::{Mode, NatsConfig};
pub use servers::Servers;
pub use sink::NatsSink;
