//! Tracing a message from the request that emits it to the broker that confirms it.
//!
//! At emit, the [`Context`]s of an [`Outbox`](crate::Outbox) write the caller's trace and log context into headers of
//! the message. Every sink sends these headers unchanged, so that consumers can continue the trace. At delivery,
//! [`Middleware`](crate::sink::Middleware) can make a span of every attempt.
//!
//! | header | what |
//! |---|---|
//! | [`TRACEPARENT`], [`TRACESTATE`] | the emitting span, in the format of W3C Trace Context |
//! | [`BAGGAGE`] | W3C Baggage, with Sentry's entries (`sentry-…`) among the others |
//! | [`SENTRY_TRACE`] | the emitting span, in Sentry's format |
//! | [`LOG_CONTEXT`] | the log context of the caller: a JSON object |
//!
//! Ready-made: `sendoff-opentelemetry`, `sendoff-sentry` and `sendoff-log-context`.

mod capture;

pub use capture::Context;
pub(crate) use capture::add_captured;

/// The header with the emitting span: `00-<trace id>-<span id>-<flags>`.
pub const TRACEPARENT: &str = "traceparent";
/// The header with additions of tracing systems to [`TRACEPARENT`].
pub const TRACESTATE: &str = "tracestate";
/// The header with pairs of names and values that are passed on with the trace.
pub const BAGGAGE: &str = "baggage";
/// The header with the emitting span for Sentry: `<trace id>-<span id>-<sampled>`.
pub const SENTRY_TRACE: &str = "sentry-trace";
/// The header with the log context of the caller: one JSON object, names to values.
pub const LOG_CONTEXT: &str = "log-context";
