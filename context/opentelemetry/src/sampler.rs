//! A sampler that records retries.

use opentelemetry::trace::{Link, SpanKind, TraceContextExt, TraceId, TraceState};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SamplingDecision, SamplingResult, ShouldSample};

/// Samples every span that is linked to a sampled one, and uses another sampler for the rest.
///
/// A retry is a separate trace with a link to the span that emitted the message. A sampler that keeps one trace in a
/// hundred would keep only one in a hundred of the retries of sampled messages.
#[derive(Debug, Clone)]
pub struct SampleLinked<S>(pub S);

impl<S: ShouldSample + Clone + 'static> ShouldSample for SampleLinked<S> {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace_id: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        if !links.iter().any(|link| link.span_context.is_sampled()) {
            return self.0.should_sample(parent, trace_id, name, kind, attributes, links);
        }
        let state = parent.map_or_else(TraceState::default, |parent| {
            parent.span().span_context().trace_state().clone()
        });
        SamplingResult {
            decision: SamplingDecision::RecordAndSample,
            attributes: Vec::new(),
            trace_state: state,
        }
    }
}
