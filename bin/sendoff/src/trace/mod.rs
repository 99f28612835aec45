//! Traces: a span for every sampled attempt, sent to a collector by OTLP.
//!
//! There is one exporter per process. OpenTelemetry's own variables (`OTEL_…`) apply to what `[trace]` does not set.

mod client;
mod exporter;
#[cfg(feature = "otlp-grpc")]
mod grpc;
mod sampling;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Key, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use sendoff::Result;
use sendoff_opentelemetry::{PublishSpans, SampleLinked};

use crate::config::TraceConfig;

/// How long the program waits for the collector to accept the last spans when it ends.
const PATIENCE: Duration = Duration::from_secs(5);

static TRACES: OnceLock<Traces> = OnceLock::new();

struct Traces {
    provider: SdkTracerProvider,
    spans: Arc<PublishSpans<SdkTracer>>,
}

/// Starts tracing, if it is configured. A second call changes nothing. Spans are sent on the current runtime.
///
/// # Errors
/// [`sendoff::ErrorKind::Invalid`] for invalid settings. An unreachable collector is not an error.
pub(crate) fn start(config: &TraceConfig) -> Result<()> {
    if !is_on(config, |name| std::env::var(name).ok()) {
        return Ok(());
    }
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter::build(config)?)
        // `PublishSpans::roots` decides which traces start, before a span is created.
        .with_sampler(SampleLinked(Sampler::ParentBased(Box::new(Sampler::AlwaysOn))))
        .with_resource(resource(config))
        .build();
    let share = sampling::roots(config.sample, |name| std::env::var(name).ok())?;
    let spans = PublishSpans::new(provider.tracer("sendoff")).roots(share);
    let spans = Arc::new(spans);
    let _ = TRACES.set(Traces { provider, spans });
    Ok(())
}

/// The middleware for relays that makes spans, if tracing is on.
pub(crate) fn publish_spans() -> Option<Arc<PublishSpans<SdkTracer>>> {
    TRACES.get().map(|traces| traces.spans.clone())
}

/// Sends the remaining spans.
pub(crate) async fn stop() {
    let Some(traces) = TRACES.get() else { return };
    let provider = traces.provider.clone();
    let stopped = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(PATIENCE)).await;
    if let Ok(Err(error)) = stopped {
        tracing::warn!(event = "trace_export_failed", %error, "trace export failed; the last spans may be lost");
    }
}

fn is_on(config: &TraceConfig, variable: impl Fn(&str) -> Option<String>) -> bool {
    let is = |name: &str, value: &str| variable(name).is_some_and(|is| is.trim().eq_ignore_ascii_case(value));
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    if is("OTEL_SDK_DISABLED", "true") {
        return false;
    }
    if config.endpoint.is_some() {
        return true;
    }
    let named = is_set("OTEL_EXPORTER_OTLP_ENDPOINT") || is_set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    named && !is("OTEL_TRACES_EXPORTER", "none")
}

fn resource(config: &TraceConfig) -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let builder = Resource::builder().with_attribute(version.clone());
    if let Some(name) = &config.service_name {
        return builder.with_service_name(name.clone()).build();
    }
    let found = builder.build();
    let name = found.get(&Key::from_static_str("service.name"));
    if name.is_none_or(|name| name.as_str().starts_with("unknown_service")) {
        let builder = Resource::builder().with_attribute(version);
        return builder.with_service_name("sendoff").build();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_on_only_when_somebody_named_a_collector() {
        let named = TraceConfig {
            endpoint: Some("http://localhost:4318".to_owned()),
            ..TraceConfig::default()
        };
        let on = |config: &TraceConfig, variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
            is_on(config, |name| find(name).map(|(_, value)| (*value).to_owned()))
        };
        let nobody = TraceConfig::default();
        let (general, own) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        assert!(!on(&nobody, &[]));
        assert!(!on(&nobody, &[(general, "")]));
        assert!(on(&nobody, &[(general, "http://otel:4318")]));
        assert!(on(&nobody, &[(own, "http://otel:4318")]));
        assert!(!on(
            &nobody,
            &[(general, "http://otel:4318"), ("OTEL_TRACES_EXPORTER", "none")]
        ));
        assert!(on(&named, &[]));
        assert!(!on(&named, &[("OTEL_SDK_DISABLED", "true")]));
    }
}
