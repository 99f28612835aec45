//! OpenTelemetry for Sendoff: the caller's trace context in every message, and a span for every attempt to deliver it.
//!
//! An application adds [`TraceContext`] to its outbox:
//!
//! ```
//! use sendoff::Outbox;
//! use sendoff_opentelemetry::TraceContext;
//!
//! let outbox = Outbox::builder().context(TraceContext::new()).build();
//! # let _ = outbox;
//! ```
//!
//! It takes the current span of `tracing` (with the layer of `tracing-opentelemetry` in the subscriber) or of
//! OpenTelemetry itself, and writes the W3C headers `traceparent`, `tracestate` and `baggage`.
//!
//! A relay uses [`PublishSpans`] as middleware. The binary `sendoff` does so when its configuration has a `[trace]`; a
//! relay inside an application uses `Relay::builder(store).middleware(Arc::new(PublishSpans::new(tracer)))`.
#![forbid(unsafe_code)]

mod capture;
mod carrier;
mod publish;
mod sampler;

pub use capture::TraceContext;
pub use publish::PublishSpans;
pub use sampler::SampleLinked;
