//! A sink for RabbitMQ.
//!
//! - **Delivered** means that the broker confirmed the message and did not return it: it is in every queue that it was
//!   routed to, at least one.
//! - **Pipelined**: a batch is sent without waiting for single confirms. A message that cannot be delivered does not
//!   delay the others.
//! - Exchange, routing key and headers are [templates](sendoff_wire::Template), filled in from each message.
//! - The sink declares nothing on the broker unless [the settings say so](RabbitMqConfig::declare).
//!
//! Sinks that build other messages for RabbitMQ use its [`publisher`].
#![forbid(unsafe_code)]

mod config;
mod encode;
mod error;
pub mod publisher;
mod sink;

pub use config::{ExchangeType, QueueType, RabbitMqConfig};
pub use sink::RabbitMqSink;
