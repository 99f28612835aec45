//! Redis as a Sendoff sink: streams, lists and channels.
//!
//! | mode | command | delivered when |
//! |---|---|---|
//! | `stream` | `XADD` | the entry is in the stream |
//! | `list` | `RPUSH` or `LPUSH` | the element is in the list |
//! | `pubsub` | `PUBLISH` | Redis has sent it to the current subscribers; it is not stored |
//!
//! The durability of streams and lists depends on the server: see `appendonly` and `appendfsync` there.
//!
//! All messages of a batch are in flight at the same time. Redis answers each of them separately, and may refuse one
//! and accept the next (out of memory, then not), so the sink does not guarantee the order of a key within a batch: the
//! relay then sends the messages of a key one after the other.
//!
//! Sinks that write other data to Redis use its [`Commander`].
#![forbid(unsafe_code)]

mod cluster;
mod commander;
mod config;
mod connect;
mod connection;
mod encode;
mod error;
mod link;
mod sink;

pub use commander::Commander;
pub use config::{End, Mode, NoReceivers, RedisConfig};
pub use error::Lack;
pub use sink::RedisSink;
