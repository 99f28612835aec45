//! A message for Redis, as kombu keeps messages there. No connection.

mod binding;
mod envelope;
mod publish;

pub use binding::Binding;
pub use publish::{RedisPublish, RedisTarget};
