//! A sink for RabbitMQ.
//!
//! - **Delivered** means that the broker confirmed the message and did not return it: it is in every queue that it is
//!   routed to, and there is at least one.
//! - **Pipelined**: a batch is sent as a whole, then confirmed as a whole. One message that cannot be delivered does not
//!   keep the others back.
//! - Exchange, routing key and headers are [templates](sendoff_wire::Template), filled in from each message.
//! - Nothing is declared on the broker unless [asked for](RabbitMqConfig::declare).
//!
//! Sinks that make other messages for RabbitMQ use its [`publisher`].
#![forbid(unsafe_code)]

mod config;
mod encode;
mod error;
pub mod publisher;
mod sink;

pub use config::{ExchangeType, QueueType, RabbitMqConfig};
pub use sink::RabbitMqSink;
