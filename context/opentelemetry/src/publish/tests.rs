use futures::FutureExt;
use opentelemetry::trace::{SpanId, TraceId, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SdkTracer, SdkTracerProvider, SpanData};
use sendoff::store::{RowRef, Table};
use sendoff::{Headers, Sink, Uuid};

use super::*;
use crate::SampleLinked;

const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const NOT_SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

struct Scene {
    spans: PublishSpans<SdkTracer>,
    provider: SdkTracerProvider,
    exported: InMemorySpanExporter,
}

impl Scene {
    /// A tracer that starts a trace only if it continues or links another one.
    fn new() -> Self {
        let exported = InMemorySpanExporter::default();
        let sampler = SampleLinked(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)));
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exported.clone())
            .with_sampler(sampler)
            .build();
        Self {
            spans: PublishSpans::new(provider.tracer("test")),
            provider,
            exported,
        }
    }

    fn attempt(&self, outgoing: &Outgoing, outcome: Option<&Outcome>) -> Option<SpanData> {
        let before = self.exported.get_finished_spans().unwrap().len();
        publish(&self.spans, outgoing, outcome);
        self.provider.force_flush().unwrap();
        self.exported.get_finished_spans().unwrap().get(before).cloned()
    }
}

/// Answers with this outcome, or never.
struct Answers(Option<Outcome>);

#[async_trait]
impl Sink for Answers {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        match &self.0 {
            Some(outcome) => vec![outcome.clone(); batch.len()],
            None => std::future::pending().await,
        }
    }
}

/// Publishes through the middleware; without an outcome, the attempt is abandoned.
fn publish<T: Tracer + Send + Sync + 'static>(spans: &PublishSpans<T>, outgoing: &Outgoing, outcome: Option<&Outcome>)
where
    T::Span: Send + Sync + 'static,
{
    let (sink, batch) = (Answers(outcome.cloned()), [Arc::new(outgoing.clone())]);
    let answered = spans.publish(&batch, Next::new("rabbit", &sink, &[])).now_or_never();
    assert_eq!(answered, outcome.map(|outcome| vec![outcome.clone()]));
}

fn outgoing(traceparent: Option<&str>, attempts: u32) -> Outgoing {
    let mut headers = Headers::new();
    if let Some(traceparent) = traceparent {
        headers.insert(TRACEPARENT, traceparent);
        headers.insert("tracestate", "congo=t61");
    }
    headers.insert(LOG_CONTEXT, r#"{"request_id":"a-1","user":7,"sendoff.sink":"forged"}"#);
    Outgoing {
        id: Uuid::now_v7(),
        topic: "order.placed".to_owned(),
        payload: "{}".into(),
        headers,
        attempts,
        ..Outgoing::blank(RowRef {
            table: Table::Ready,
            lane: 0,
            seq: 1,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        })
    }
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let mut found = span.attributes.iter().filter(|pair| pair.key.as_str() == name);
    let value = found.next().map(|pair| pair.value.to_string());
    assert!(found.next().is_none(), "{name} is set twice");
    value
}

#[test]
fn the_first_attempt_is_a_child_of_the_emitting_span() {
    let message = outgoing(Some(SAMPLED), 0);
    let span = Scene::new().attempt(&message, Some(&Outcome::Delivered)).unwrap();
    let trace = TraceId::from_hex("4bf92f3577b34da6a3ce929d0e0e4736").unwrap();
    assert_eq!(span.span_context.trace_id(), trace);
    assert_eq!(span.parent_span_id, SpanId::from_hex("00f067aa0ba902b7").unwrap());
    assert_eq!(span.span_context.trace_state().header(), "congo=t61");
    assert!(span.links.links.is_empty());
    assert_eq!(span.name, "publish order.placed");
    assert_eq!(span.status, Status::Ok);
    let id = message.id.to_string();
    for (name, value) in [
        ("messaging.message.id", id.as_str()),
        ("messaging.destination.name", "order.placed"),
        ("sendoff.sink", "rabbit"),
        ("sendoff.attempt", "1"),
        ("request_id", "a-1"),
        ("user", "7"),
    ] {
        assert_eq!(attribute(&span, name).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn a_retry_is_linked_to_the_emitting_span_and_seen_whenever_that_is() {
    let failed = Outcome::Temporary("no route to host".into());
    let span = Scene::new()
        .attempt(&outgoing(Some(SAMPLED), 2), Some(&failed))
        .unwrap();
    assert_eq!(span.parent_span_id, SpanId::INVALID);
    let origin = &span.links.links[0].span_context;
    assert_eq!(origin.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_ne!(span.span_context.trace_id(), origin.trace_id());
    assert_eq!(span.status, Status::error("no route to host"));
    assert_eq!(attribute(&span, "error.type").as_deref(), Some("temporary"));
    assert_eq!(attribute(&span, "sendoff.attempt").as_deref(), Some("3"));
}

#[test]
fn a_message_whose_trace_is_not_recorded_has_no_span() {
    // A tracer that would record everything: it must not be used.
    let provider = SdkTracerProvider::builder().with_sampler(Sampler::AlwaysOn).build();
    let spans = PublishSpans::new(provider.tracer("test"));
    for traceparent in [NOT_SAMPLED, "", "00", "00-a-b", "nonsense-everywhere-in-here"] {
        for attempts in [0, 1] {
            assert!(
                spans.begin(&outgoing(Some(traceparent), attempts), "rabbit").is_none(),
                "{traceparent}"
            );
        }
    }
}

#[test]
fn a_message_without_a_trace_begins_one_as_often_as_told() {
    let exported = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exported.clone())
        .build();
    let count = |roots: f64| {
        exported.reset();
        let spans = PublishSpans::new(provider.tracer("test")).roots(roots);
        for _ in 0..1000 {
            publish(&spans, &outgoing(None, 0), Some(&Outcome::Delivered));
        }
        exported.get_finished_spans().unwrap().len()
    };
    assert_eq!(count(1.0), 1000);
    assert_eq!(count(0.0), 0);
    assert!((300..700).contains(&count(0.5)));
}

#[test]
fn an_attempt_that_the_relay_let_go_of_ends_without_a_status() {
    let span = Scene::new().attempt(&outgoing(Some(SAMPLED), 0), None).unwrap();
    assert_eq!(span.status, Status::Unset);
}

/// Panics whenever it is asked for a span.
struct Panics;

impl Tracer for Panics {
    type Span = opentelemetry::trace::noop::NoopSpan;

    fn build_with_context(&self, _: opentelemetry::trace::SpanBuilder, _: &Context) -> Self::Span {
        panic!("on purpose")
    }
}

#[test]
fn a_tracer_that_panics_changes_no_outcome() {
    publish(
        &PublishSpans::new(Panics),
        &outgoing(None, 0),
        Some(&Outcome::Delivered),
    );
}
