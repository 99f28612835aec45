//! A span for every attempt.

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Link, Span, SpanContext, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use sendoff::context::{DeliveryTracer, LOG_CONTEXT, TRACEPARENT, TracedAttempt};
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

impl<T: Tracer + Send + Sync + 'static> DeliveryTracer for PublishSpans<T>
where
    T::Span: Send + Sync + 'static,
{
    fn publishing(&self, outgoing: &Outgoing, sink: &str) -> Option<Box<dyn TracedAttempt>> {
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
        span.is_recording()
            .then(|| Box::new(Attempt(span)) as Box<dyn TracedAttempt>)
    }
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

/// An attempt with a span. Dropping it ends the span.
struct Attempt<S: Span>(S);

impl<S: Span + Send> TracedAttempt for Attempt<S> {
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
