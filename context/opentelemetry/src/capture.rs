//! Captures the caller's trace context in the W3C format.

use opentelemetry::Context as OtelContext;
use opentelemetry::baggage::BaggageExt;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use sendoff::{Context, Headers};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::carrier::Writer;

/// Adds `traceparent`, `tracestate` and `baggage` of the current span to a message when it is emitted. Without a span,
/// nothing is added.
#[derive(Debug, Default)]
pub struct TraceContext {
    trace: TraceContextPropagator,
    baggage: BaggagePropagator,
}

impl TraceContext {
    /// Creates a context that uses the headers of the W3C.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Context for TraceContext {
    fn capture(&self, headers: &mut Headers) {
        let current = OtelContext::current();
        // A layer can be configured not to make its spans current for OpenTelemetry; then only `tracing` has them.
        let traced = tracing::Span::current().context();
        let context = if traced.span().span_context().is_valid() {
            &traced
        } else {
            &current
        };
        self.trace.inject_context(context, &mut Writer(headers));
        let bags = if current.baggage().is_empty() {
            context
        } else {
            &current
        };
        self.baggage.inject_context(bags, &mut Writer(headers));
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::KeyValue;
    use opentelemetry::trace::{Tracer, TracerProvider};
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::prelude::*;

    use super::*;

    fn captured() -> Headers {
        let mut headers = Headers::new();
        TraceContext::new().capture(&mut headers);
        headers
    }

    #[test]
    fn the_current_span_of_tracing_is_found_whether_or_not_it_is_made_current() {
        for activation in [true, false] {
            let tracer = SdkTracerProvider::builder().build().tracer("test");
            let layer = tracing_opentelemetry::layer().with_tracer(tracer);
            let subscriber = tracing_subscriber::registry().with(layer.with_context_activation(activation));
            tracing::subscriber::with_default(subscriber, || {
                assert_eq!(captured(), Headers::new());
                let span = tracing::info_span!("request");
                let _entered = span.enter();
                let context = span.context();
                let span = context.span().span_context().clone();
                let expected = format!("00-{}-{}-01", span.trace_id(), span.span_id());
                let headers = captured();
                assert_eq!(headers.get("traceparent"), Some(expected.as_str()));
                assert_eq!(headers.len(), 1, "{headers:?}");
            });
        }
    }

    #[test]
    fn a_span_of_opentelemetry_alone_is_found_with_its_baggage() {
        let tracer = SdkTracerProvider::builder().build().tracer("test");
        let context = OtelContext::current_with_span(tracer.start("request"));
        let _attached = context
            .with_baggage([KeyValue::new("tenant", "7 b"), KeyValue::new("plan", "gold")])
            .attach();
        let headers = captured();
        assert!(headers.get("traceparent").is_some_and(|text| text.ends_with("-01")));
        let mut entries: Vec<&str> = headers.get("baggage").unwrap().split(',').collect();
        entries.sort_unstable();
        assert_eq!(entries, ["plan=gold", "tenant=7%20b"]);
    }

    #[test]
    fn no_span_means_no_headers() {
        assert_eq!(captured(), Headers::new());
    }
}
