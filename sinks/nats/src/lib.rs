//! NATS as a Sendoff sink.
//!
//! - **JetStream** (the default): a message is delivered when the stream has acknowledged it. Its id is sent as
//!   `Nats-Msg-Id`, so a copy within the stream's duplicate window is not stored twice; that acknowledgement counts as
//!   delivered. A batch is sent without waiting in between, then the sink waits for all its acknowledgements.
//! - **Core NATS**, by explicit choice (`mode = "core"`): a message is delivered when the server has read it. A client
//!   that is not subscribed at that moment never gets it.
//!
//! The subject is a template. A message's fields cannot act as a wildcard or add a token, see
//! [`NatsConfig::subject`].
#![forbid(unsafe_code)]

mod acks;
mod config;
mod connect;
mod core;
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
