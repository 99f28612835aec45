//! Export of spans by gRPC: the feature `otlp-grpc`.

use opentelemetry_otlp::tonic_types::metadata::MetadataMap;
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{WithExportConfig, WithTonicConfig};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sendoff::{Error, ErrorKind, Result};

use super::exporter::{Built, headers};
use crate::config::TraceConfig;

/// The exporter.
pub(super) fn grpc(config: &TraceConfig) -> Result<Built> {
    let mut metadata = HeaderMap::new();
    for (name, value) in headers(config)? {
        let pair = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, value) = pair.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("the header {name:?} in [trace] cannot be sent"),
            )
            .because("the value of the header is not printable text")
            .next_step("use printable text as the value of the header")
        })?;
        metadata.insert(name, value);
    }
    let mut builder = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_metadata(MetadataMap::from_headers(metadata));
    if let Some(endpoint) = &config.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
        if endpoint.starts_with("https://") {
            // It may already be installed, which is fine: every part of the program uses the same provider.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
            builder = builder.with_tls_config(ClientTlsConfig::new().with_native_roots());
        }
    }
    Ok(builder.build())
}
