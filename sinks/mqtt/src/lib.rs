//! An MQTT broker as a Sendoff sink, MQTT 5 or 3.1.1.
//!
//! A message is delivered when the broker has confirmed it: with PUBACK (QoS 1, the default) or PUBCOMP (QoS 2). A batch is
//! sent without waiting in between, as far as the broker allows, and its confirmations are awaited together.
//!
//! The packets are `mqtt-protocol-core`'s; when one is sent, and what its answer means for a message, is decided here. A
//! client library keeps messages over a lost connection and sends them again when it likes; here the relay does that, and
//! has to know of every message whether it was sent and whether it was confirmed.
//!
//! There is no task in the background. A connection that has rested is asked for a sign of life before it is used.
#![forbid(unsafe_code)]

mod batch;
mod config;
mod connect;
mod encode;
mod error;
mod link;
mod packet;
mod sink;
mod stream;
mod told;
mod topic;

pub use config::{MqttConfig, Qos, Version};
pub use sink::MqttSink;
