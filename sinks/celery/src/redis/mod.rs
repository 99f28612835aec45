//! Messages for Redis, as kombu stores them. This module does no I/O.

mod binding;
mod envelope;
mod publish;

pub use binding::Binding;
pub use publish::{RedisPublish, RedisTarget};
