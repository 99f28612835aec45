//! Following a message from the request that emits it to the broker that confirms it.
//!
//! At emit, the [`Context`]s of an [`Outbox`](crate::Outbox) write where the caller is into headers of the message. The
//! headers go out with it as they are, whichever the sink, so that its consumers go on from there. At delivery, those who
//! [`Follow`] are told of every attempt.
//!
//! | header | what |
//! |---|---|
//! | [`TRACEPARENT`], [`TRACESTATE`] | the emitting span, as W3C Trace Context has it |
//! | [`BAGGAGE`] | W3C Baggage, with Sentry's entries (`sentry-…`) among the others |
//! | [`SENTRY_TRACE`] | the emitting span, as Sentry has it |
//! | [`LOG_CONTEXT`] | the log context of the caller: a JSON object |
//!
//! Ready-made: `sendoff-opentelemetry`, `sendoff-sentry` and `sendoff-log-context`.

mod capture;
mod follow;

pub use capture::Context;
pub(crate) use capture::add_captured;
pub use follow::{Follow, Followed};

/// The header with the emitting span: `00-<trace id>-<span id>-<flags>`.
pub const TRACEPARENT: &str = "traceparent";
/// The header with what tracing systems add to [`TRACEPARENT`].
pub const TRACESTATE: &str = "tracestate";
/// The header with pairs of names and values that travel along.
pub const BAGGAGE: &str = "baggage";
/// The header with the emitting span for Sentry: `<trace id>-<span id>-<sampled>`.
pub const SENTRY_TRACE: &str = "sentry-trace";
/// The header with the log context of the caller: one JSON object, names to values.
pub const LOG_CONTEXT: &str = "log-context";
