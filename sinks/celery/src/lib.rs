//! Celery workers as a Sendoff sink.
//!
//! [`CelerySink`] turns a stored task (see [`sendoff::task`]) into the message that Celery itself would have sent, of its
//! message protocol 2, and brings it to RabbitMQ or to Redis. All but the last step know no connection.
//!
//! | step | where |
//! |---|---|
//! | read the stored task | [`task`] |
//! | route it, as `task_routes` would | [`route`] |
//! | write headers, properties and body | [`encode`] |
//! | put it into frames or commands | [`amqp`], [`redis`] |
//! | send it, and understand the answer | [`CelerySink`] |
//!
//! [`TaskOutbox`] is for applications that send some tasks past the outbox.
#![forbid(unsafe_code)]

pub mod amqp;
pub mod config;
pub mod encode;
mod error;
pub mod python;
pub mod redis;
pub mod route;
mod sink;
pub mod task;
mod task_outbox;

pub use config::CeleryConfig;
pub use encode::{CeleryMessage, Encoder};
pub use sink::CelerySink;
pub use task::TaskCall;
pub use task_outbox::TaskOutbox;
