//! Kafka as a Sendoff sink.
//!
//! A message is delivered when all in-sync replicas have it (`acks=all`), by an idempotent producer, so that what the
//! client itself sends again after a lost answer is stored once. A batch is handed over at once and its delivery reports
//! are awaited together. The message's ordering key is the record's key, and picks the partition as Java's client does.
//!
//! librdkafka is built from its sources with this crate. Encryption and SCRAM need OpenSSL: the feature `ssl`.
#![forbid(unsafe_code)]

mod config;
mod encode;
mod error;
mod health;
mod producer;
mod sink;

pub use config::{Compression, KafkaConfig, Mechanism};
pub use sink::KafkaSink;
