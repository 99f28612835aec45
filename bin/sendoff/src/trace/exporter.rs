//! Export of spans to a collector.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_otlp::{ExporterBuildError, Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use sendoff::{Error, ErrorKind, Result};

use super::client::Client;
use crate::config::{TraceConfig, TraceProtocol};

/// The configured exporter.
pub(super) fn build(config: &TraceConfig) -> Result<Told<opentelemetry_otlp::SpanExporter>> {
    let built = match protocol(config, |name| std::env::var(name).ok()) {
        TraceProtocol::Http => http(config)?,
        #[cfg(feature = "otlp-grpc")]
        TraceProtocol::Grpc => super::grpc::grpc(config)?,
        #[cfg(not(feature = "otlp-grpc"))]
        TraceProtocol::Grpc => return Err(TraceProtocol::no_grpc()),
    };
    let exporter = built.map_err(|error| {
        Error::new(ErrorKind::Invalid, "cannot export traces as configured")
            .because(error.to_string())
            .next_step("correct [trace], or the variables OTEL_EXPORTER_OTLP_…")
            .with_source(error)
    })?;
    Ok(Told {
        exporter,
        failing: AtomicBool::new(false),
    })
}

pub(super) type Built = Result<opentelemetry_otlp::SpanExporter, ExporterBuildError>;

fn protocol(config: &TraceConfig, variable: impl Fn(&str) -> Option<String>) -> TraceProtocol {
    let variable = |name| variable(name).filter(|value| !value.is_empty());
    let named = || {
        let own = variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL");
        let is_grpc = own.or_else(|| variable("OTEL_EXPORTER_OTLP_PROTOCOL"))? == "grpc";
        is_grpc.then_some(TraceProtocol::Grpc)
    };
    config.protocol.or_else(named).unwrap_or(TraceProtocol::Http)
}

fn http(config: &TraceConfig) -> Result<Built> {
    let mut builder = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(Client::new()?)
        .with_headers(headers(config)?);
    if let Some(endpoint) = &config.endpoint {
        builder = builder.with_endpoint(http_endpoint(endpoint));
    }
    Ok(builder.build())
}

pub(super) fn headers(config: &TraceConfig) -> Result<HashMap<String, String>> {
    let reveal = |(name, value): (&String, &sendoff_wire::Secret)| Ok((name.to_ascii_lowercase(), value.reveal()?));
    config.headers.iter().map(reveal).collect()
}

/// The URL for spans at this collector; without a path, the standard path of OTLP.
fn http_endpoint(endpoint: &str) -> String {
    let has_path = endpoint.splitn(4, '/').nth(3).is_some_and(|path| !path.is_empty());
    if has_path {
        endpoint.to_owned()
    } else {
        format!("{}/v1/traces", endpoint.trim_end_matches('/'))
    }
}

/// Logs once when a collector stops accepting spans, and once when it accepts them again. Relays keep working
/// meanwhile; spans that do not fit into the buffer are dropped.
#[derive(Debug)]
pub(super) struct Told<E> {
    exporter: E,
    failing: AtomicBool,
}

impl<E: SpanExporter> SpanExporter for Told<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let done = self.exporter.export(batch).await;
        match (&done, self.failing.swap(done.is_err(), Ordering::Relaxed)) {
            (Err(error), false) => {
                tracing::warn!(event = "trace_export_failed", %error, "cannot export traces; spans are lost until the collector works again");
            }
            (Ok(()), true) => tracing::info!(event = "trace_export_works", "trace export works again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        done
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_of_the_file_counts_more_than_variables() {
        let configured = |protocol| TraceConfig {
            protocol,
            ..TraceConfig::default()
        };
        let (general, own) = ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL");
        for (in_file, variables, expected) in [
            (None, &[][..], TraceProtocol::Http),
            (None, &[(general, "grpc")], TraceProtocol::Grpc),
            (None, &[(general, "grpc"), (own, "http/protobuf")], TraceProtocol::Http),
            (Some(TraceProtocol::Http), &[(own, "grpc")], TraceProtocol::Http),
            (Some(TraceProtocol::Grpc), &[], TraceProtocol::Grpc),
        ] {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
            let variable = |name: &str| find(name).map(|(_, value)| (*value).to_owned());
            assert_eq!(
                protocol(&configured(in_file), variable),
                expected,
                "{in_file:?} {variables:?}"
            );
        }
    }

    #[test]
    fn a_collector_without_a_path_gets_the_usual_one() {
        assert_eq!(http_endpoint("http://otel:4318"), "http://otel:4318/v1/traces");
        assert_eq!(http_endpoint("http://otel:4318/"), "http://otel:4318/v1/traces");
        assert_eq!(http_endpoint("https://otel/custom"), "https://otel/custom");
    }
}
