//! A span for every attempt.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Link, Span, SpanContext, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use sendoff::context::{LOG_CONTEXT, TRACEPARENT};
use sendoff::sink::{Middleware, Next};
use sendoff::{Outcome, Outgoing};
use serde_json::{Map, Value};

use crate::carrier::Reader;

/// Creates a span `publish` for every attempt to deliver a traced message.
///
/// - The first attempt is a child of the span that emitted the message: one trace from the request to the broker.
/// - A retry may come hours later, so it is a separate trace, linked to the span that emitted the message. Use
///   [`SampleLinked`](crate::SampleLinked) as the tracer's sampler, so that retries of sampled messages are recorded.
/// - For a message whose trace is not sampled, only its `traceparent` is read.
/// - A message without a trace starts one, with the probability of [`PublishSpans::roots`].
///
/// The attributes follow the semantic conventions for messaging, with `sendoff.sink`, `sendoff.attempt`, and the fields
/// of the message's log context.
///
/// A span of an attempt that the relay abandons has no status. A panic of the tracer is logged; the message is sent.
/// Add it before other middleware: the spans then have the final outcome, and the time that the others took.
#[derive(Debug)]
pub struct PublishSpans<T> {
    tracer: T,
    roots: f64,
    propagator: TraceContextPropagator,
}

impl<T> PublishSpans<T> {
    /// Creates spans with the given tracer.
    pub fn new(tracer: T) -> Self {
        Self {
            tracer,
            roots: 1.0,
            propagator: TraceContextPropagator::new(),
        }
    }

    /// Sets the share of messages without a trace that start one; all of them unless set.
    #[must_use]
    pub fn roots(mut self, share: f64) -> Self {
        self.roots = share;
        self
    }

    /// The span that emitted the message.
    fn origin(&self, outgoing: &Outgoing) -> Option<SpanContext> {
        let context = self
            .propagator
            .extract_with_context(&Context::new(), &Reader(&outgoing.headers));
        let origin = context.span().span_context().clone();
        origin.is_valid().then_some(origin)
    }
}

#[async_trait]
impl<T: Tracer + Send + Sync + 'static> Middleware for PublishSpans<T>
where
    T::Span: Send + Sync + 'static,
{
    async fn publish(&self, batch: &[Arc<Outgoing>], next: Next<'_>) -> Vec<Outcome> {
        let begun = |(at, outgoing): (usize, &Arc<Outgoing>)| {
            let span = contained(|| self.begin(outgoing, next.sink())).flatten()?;
            Some((at, span))
        };
        let spans: Vec<(usize, T::Span)> = batch.iter().enumerate().filter_map(begun).collect();
        let outcomes = next.publish(batch).await;
        for (at, mut span) in spans {
            if let Some(outcome) = outcomes.get(at) {
                contained(|| answered(&mut span, outcome));
            }
        }
        outcomes
    }
}

impl<T: Tracer> PublishSpans<T> {
    /// The span of an attempt, if it is recorded. Dropping it ends it.
    fn begin(&self, outgoing: &Outgoing, sink: &str) -> Option<T::Span> {
        let origin = match outgoing.headers.get(TRACEPARENT) {
            Some(text) if !is_sampled(text) => return None,
            Some(_) => self.origin(outgoing),
            None => None,
        };
        if origin.is_none() && (self.roots <= 0.0 || (self.roots < 1.0 && fastrand::f64() >= self.roots)) {
            return None;
        }
        let mut builder = self
            .tracer
            .span_builder(format!("publish {}", outgoing.topic))
            .with_kind(SpanKind::Client)
            .with_attributes(attributes(outgoing, sink));
        let span = match origin {
            Some(origin) if outgoing.attempts == 0 => {
                let parent = Context::new().with_remote_span_context(origin);
                self.tracer.build_with_context(builder, &parent)
            }
            origin => {
                let link = |origin| Link::new(origin, Vec::new(), 0);
                builder.links = origin.map(|origin| vec![link(origin)]);
                self.tracer.build_with_context(builder, &Context::new())
            }
        };
        span.is_recording().then_some(span)
    }
}

/// A tracer that panics must not fail the messages.
fn contained<R>(call: impl FnOnce() -> R) -> Option<R> {
    let done = catch_unwind(AssertUnwindSafe(call));
    if done.is_err() {
        tracing::error!(event = "tracer_panicked", "a tracer panicked; the message is sent");
    }
    done.ok()
}

/// Whether the flags of a `traceparent` have the sampled bit. An invalid one counts as not sampled.
fn is_sampled(traceparent: &str) -> bool {
    let flags = traceparent.split('-').nth(3).unwrap_or_default();
    u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1)
}

fn attributes(outgoing: &Outgoing, sink: &str) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("messaging.system", "sendoff"),
        KeyValue::new("messaging.operation.name", "publish"),
        KeyValue::new("messaging.operation.type", "send"),
        KeyValue::new("messaging.destination.name", outgoing.topic.clone()),
        KeyValue::new("messaging.message.id", outgoing.id.to_string()),
        KeyValue::new("sendoff.sink", sink.to_owned()),
        KeyValue::new("sendoff.attempt", i64::from(outgoing.attempts) + 1),
    ];
    let log = outgoing.headers.get(LOG_CONTEXT);
    let Some(Ok(fields)) = log.map(serde_json::from_str::<Map<String, Value>>) else {
        return attributes;
    };
    for (name, value) in fields {
        if attributes.iter().all(|known| known.key.as_str() != name) {
            attributes.push(match value {
                Value::Bool(value) => KeyValue::new(name, value),
                Value::String(text) => KeyValue::new(name, text),
                Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                    (Some(whole), _) => KeyValue::new(name, whole),
                    (None, Some(value)) => KeyValue::new(name, value),
                    (None, None) => KeyValue::new(name, number.to_string()),
                },
                Value::Null | Value::Array(_) | Value::Object(_) => KeyValue::new(name, value.to_string()),
            });
        }
    }
    attributes
}

fn answered(span: &mut impl Span, outcome: &Outcome) {
    let (kind, reason) = match outcome {
        Outcome::Delivered => return span.set_status(Status::Ok),
        Outcome::Temporary(reason) => ("temporary", reason),
        Outcome::Permanent(reason) => ("permanent", reason),
        Outcome::Unknown(reason) => ("unknown", reason),
        Outcome::SinkDown(reason) => ("sink_down", reason),
        // Not an error.
        Outcome::NotYet(_) => return,
    };
    span.set_attribute(KeyValue::new("error.type", kind));
    span.set_status(Status::error(reason.text().to_owned()));
}

#[cfg(test)]
mod tests;
