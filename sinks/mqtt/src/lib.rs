//! An MQTT broker as a Sendoff sink, MQTT 5 or 3.1.1.
//!
//! A message is delivered when the broker has confirmed it: with PUBACK (QoS 1, the default) or PUBCOMP (QoS 2). A
//! batch is sent without waiting in between, as far as the broker allows, then the sink waits for all its
//! confirmations.
//!
//! `mqtt-protocol-core` encodes the packets; this crate decides when one is sent, and what its answer means for a
//! message. A client library would keep messages over a lost connection and send them again by itself. Here the relay
//! does that, and it must know of every message whether it was sent and whether it was confirmed.
//!
//! There is no background task. An idle connection is checked with a ping before it is used.
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
