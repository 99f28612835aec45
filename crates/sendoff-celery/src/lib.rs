//! Celery tasks as messages.
//!
//! A [`Task`] is emitted like any other message, in the caller's transaction. A relay with a Celery sink sends it to
//! RabbitMQ or Redis as Celery itself would, and ordinary Celery workers run it. The id of the message is the id of the
//! task.
//!
//! # How a task is stored
//!
//! A task is a plain row of the outbox, so that every language can emit one:
//!
//! | column | what |
//! |---|---|
//! | `id` | the task id |
//! | `topic` | the task's name |
//! | `content_type` | [`CONTENT_TYPE`] |
//! | `payload` | `{"args": [...], "kwargs": {...}, "options": {...}}`, each of the three is optional |
//! | `created_at` | the time from which `countdown` and a numeric `expires` count |
//!
//! `options` holds the options of Celery's `apply_async` under their own names, [`OPTIONS`]; `null` is the same as
//! leaving an option out. Points in time are ISO 8601 text, delays are numbers of seconds. A name in `stamped_headers`
//! is a stamp, and its value is among the options. `chain` is reversed, as in Celery: the task to run next is the last
//! one. `headers` and `properties` are objects. Any other name is an error: a misspelt `countdown` must not run a task
//! immediately.
//!
//! Numbers keep all their digits. The JSON may contain what Python's may: `NaN`, `Infinity`, half of a surrogate pair.
//!
//! Applications turn it on with the feature `celery-task` of the crate `sendoff`, where it is the module `task`.
#![forbid(unsafe_code)]

mod builder;
mod call;
mod canvas;
mod finite;
mod moment;
mod options;
mod signature;
mod typed;

pub use builder::{Compression, Serializer, Task};
pub use options::OPTIONS;
pub use signature::Signature;
pub use typed::Typed;

/// The content type of a stored task.
pub const CONTENT_TYPE: &str = "application/vnd.sendoff.celery-task+json";
