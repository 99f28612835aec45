//! Kafka as a Sendoff sink.
//!
//! A message is delivered when all in-sync replicas have it (`acks=all`). The producer is idempotent, so a record that
//! the client sends again after a lost answer is stored once. A batch is sent without waiting in between, then the sink
//! waits for all its delivery reports. The message's ordering key is the record's key, and selects the partition as
//! Java's client does.
//!
//! librdkafka is built from source with this crate. Encryption and SCRAM need OpenSSL: the feature `ssl`.
#![forbid(unsafe_code)]

mod config;
mod encode;
mod error;
mod health;
mod producer;
mod sink;

pub use config::{Compression, KafkaConfig, Mechanism};
pub use sink::KafkaSink;
