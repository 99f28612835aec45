//! Celery workers as a Sendoff sink.
//!
//! [`CelerySink`] turns a stored task (see [`sendoff::task`]) into the message that Celery itself would send, in its
//! message protocol 2, and publishes it to RabbitMQ or Redis. Only the last step does I/O.
//!
//! | step | where |
//! |---|---|
//! | parse the stored task | [`task`] |
//! | route it by `task_routes` | [`route`] |
//! | encode headers, properties and body | [`encode`] |
//! | build frames or commands | [`amqp`], [`redis`] |
//! | send it, and map the answer to an outcome | [`CelerySink`] |
//!
//! [`TaskOutbox`] is for applications that send some tasks directly, without the outbox.
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
