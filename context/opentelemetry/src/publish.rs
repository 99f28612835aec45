//! A span for every attempt.

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Link, Span, SpanContext, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use sendoff::context::{Follow, Followed, LOG_CONTEXT, TRACEPARENT};
use sendoff::{Delivery, Outcome};
use serde_json::{Map, Value};

use crate::carrier::Reader;

/// Makes a span `publish` of every attempt to deliver a message that is being traced.
///
/// - The first attempt is a child of the span that emitted the message: one trace from the request to the broker.
/// - A retry may come hours later, so it is a trace of its own, linked to the span that emitted the message. Let the tracer
///   sample with [`SampleLinked`](crate::SampleLinked), so that retries of sampled messages are seen.
/// - A message whose trace is not sampled costs one look at its `traceparent`.
/// - A message without a trace begins one, as often as [`PublishSpans::roots`] says.
///
/// The attributes are those of the conventions for messaging, `sendoff.leg`, `sendoff.attempt`, and the log context that
/// came with the message, under its own names.
#[derive(Debug)]
pub struct PublishSpans<T> {
    tracer: T,
    roots: f64,
    propagator: TraceContextPropagator,
}

impl<T> PublishSpans<T> {
    /// Spans of this tracer.
    pub fn new(tracer: T) -> Self {
        Self {
            tracer,
            roots: 1.0,
            propagator: TraceContextPropagator::new(),
        }
    }

    /// Begins a trace for this share of the messages that came without one; all of them unless set.
    #[must_use]
    pub fn roots(mut self, share: f64) -> Self {
        self.roots = share;
        self
    }

    /// The span that emitted the message.
    fn origin(&self, delivery: &Delivery) -> Option<SpanContext> {
        let context = self
            .propagator
            .extract_with_context(&Context::new(), &Reader(&delivery.headers));
        let origin = context.span().span_context().clone();
        origin.is_valid().then_some(origin)
    }
}

impl<T: Tracer + Send + Sync + 'static> Follow for PublishSpans<T>
where
    T::Span: Send + Sync + 'static,
{
    fn publishing(&self, delivery: &Delivery, leg: &str) -> Option<Box<dyn Followed>> {
        let origin = match delivery.headers.get(TRACEPARENT) {
            Some(text) if !is_sampled(text) => return None,
            Some(_) => self.origin(delivery),
            None => None,
        };
        if origin.is_none() && (self.roots <= 0.0 || (self.roots < 1.0 && fastrand::f64() >= self.roots)) {
            return None;
        }
        let mut builder = self
            .tracer
            .span_builder(format!("publish {}", delivery.topic))
            .with_kind(SpanKind::Client)
            .with_attributes(attributes(delivery, leg));
        let span = match origin {
            Some(origin) if delivery.attempts == 0 => {
                let parent = Context::new().with_remote_span_context(origin);
                self.tracer.build_with_context(builder, &parent)
            }
            origin => {
                let link = |origin| Link::new(origin, Vec::new(), 0);
                builder.links = origin.map(|origin| vec![link(origin)]);
                self.tracer.build_with_context(builder, &Context::new())
            }
        };
        span.is_recording()
            .then(|| Box::new(Attempt(span)) as Box<dyn Followed>)
    }
}

/// Whether the flags of a `traceparent` say that the trace is recorded. What cannot be read is not.
fn is_sampled(traceparent: &str) -> bool {
    let flags = traceparent.split('-').nth(3).unwrap_or_default();
    u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1)
}

fn attributes(delivery: &Delivery, leg: &str) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("messaging.system", "sendoff"),
        KeyValue::new("messaging.operation.name", "publish"),
        KeyValue::new("messaging.operation.type", "send"),
        KeyValue::new("messaging.destination.name", delivery.topic.clone()),
        KeyValue::new("messaging.message.id", delivery.id.to_string()),
        KeyValue::new("sendoff.leg", leg.to_owned()),
        KeyValue::new("sendoff.attempt", i64::from(delivery.attempts) + 1),
    ];
    let log = delivery.headers.get(LOG_CONTEXT);
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

/// An attempt that has a span. Dropping it ends the span.
struct Attempt<S: Span>(S);

impl<S: Span + Send> Followed for Attempt<S> {
    fn answered(mut self: Box<Self>, outcome: &Outcome) {
        let (kind, reason) = match outcome {
            Outcome::Delivered => return self.0.set_status(Status::Ok),
            Outcome::Temporary(reason) => ("temporary", reason),
            Outcome::Permanent(reason) => ("permanent", reason),
            Outcome::Unknown(reason) => ("unknown", reason),
            Outcome::SinkDown(reason) => ("sink_down", reason),
            // Not an error.
            Outcome::NotYet(_) => return,
        };
        self.0.set_attribute(KeyValue::new("error.type", kind));
        self.0.set_status(Status::error(reason.text().to_owned()));
    }
}

#[cfg(test)]
mod tests;
