//! Spans on their way to a collector.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_otlp::tonic_types::metadata::MetadataMap;
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{ExporterBuildError, Protocol, WithExportConfig, WithHttpConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sendoff::{Error, ErrorKind, Result};

use super::client::Client;
use crate::config::{TraceConfig, TraceProtocol};

/// An exporter as configured.
pub(super) fn build(config: &TraceConfig) -> Result<Told<opentelemetry_otlp::SpanExporter>> {
    let built = match protocol(config) {
        TraceProtocol::Http => http(config)?,
        TraceProtocol::Grpc => grpc(config)?,
    };
    let exporter = built.map_err(|error| {
        Error::new(ErrorKind::Invalid, "traces cannot be exported as configured")
            .because(error.to_string())
            .next_step("correct [trace], or the variables OTEL_EXPORTER_OTLP_…")
            .with_source(error)
    })?;
    Ok(Told {
        exporter,
        failing: AtomicBool::new(false),
    })
}

type Built = Result<opentelemetry_otlp::SpanExporter, ExporterBuildError>;

fn protocol(config: &TraceConfig) -> TraceProtocol {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
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

fn grpc(config: &TraceConfig) -> Result<Built> {
    let mut metadata = HeaderMap::new();
    for (name, value) in headers(config)? {
        let pair = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, value) = pair.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("the header {name:?} in [trace] cannot be sent"),
            )
            .because("its value is not printable text")
            .next_step("correct it")
        })?;
        metadata.insert(name, value);
    }
    let mut builder = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_metadata(MetadataMap::from_headers(metadata));
    if let Some(endpoint) = &config.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
        if endpoint.starts_with("https://") {
            // Another part of the program may have been first, with the same.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
            builder = builder.with_tls_config(ClientTlsConfig::new().with_native_roots());
        }
    }
    Ok(builder.build())
}

fn headers(config: &TraceConfig) -> Result<HashMap<String, String>> {
    let reveal = |(name, value): (&String, &sendoff_wire::Secret)| Ok((name.to_ascii_lowercase(), value.reveal()?));
    config.headers.iter().map(reveal).collect()
}

/// Where spans are taken at this collector. Without a path, where OTLP has it.
fn http_endpoint(endpoint: &str) -> String {
    let has_path = endpoint.splitn(4, '/').nth(3).is_some_and(|path| !path.is_empty());
    if has_path {
        endpoint.to_owned()
    } else {
        format!("{}/v1/traces", endpoint.trim_end_matches('/'))
    }
}

/// Tells when a collector stops taking spans, and when it takes them again: once each. Relays go on meanwhile, and spans
/// for which there is no room are dropped.
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
                tracing::warn!(event = "trace_export_failed", %error, "spans are lost until the collector takes them");
            }
            (Ok(()), true) => tracing::info!(event = "trace_export_works", "the collector takes spans again"),
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
    fn a_collector_without_a_path_gets_the_usual_one() {
        assert_eq!(http_endpoint("http://otel:4318"), "http://otel:4318/v1/traces");
        assert_eq!(http_endpoint("http://otel:4318/"), "http://otel:4318/v1/traces");
        assert_eq!(http_endpoint("https://otel/custom"), "https://otel/custom");
    }
}
