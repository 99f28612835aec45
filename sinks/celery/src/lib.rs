//! Celery workers as a Sendoff sink.
//!
//! What is here knows no connection: it turns a stored task (see [`sendoff::task`]) into the message that Celery itself
//! would have sent, of its message protocol 2, and that into what goes to RabbitMQ or to Redis.
//!
//! | step | where |
//! |---|---|
//! | read the stored task | [`task`] |
//! | route it, as `task_routes` would | [`route`] |
//! | write headers, properties and body | [`encode`] |
//! | put it into frames or commands | [`amqp`], [`redis`] |
#![forbid(unsafe_code)]

pub mod amqp;
pub mod config;
pub mod encode;
mod error;
pub mod python;
pub mod redis;
pub mod route;
pub mod task;

pub use config::CeleryConfig;
pub use encode::{CeleryMessage, Encoder};
pub use task::TaskCall;
