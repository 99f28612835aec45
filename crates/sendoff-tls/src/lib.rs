//! TLS settings that the stores and the sinks of Sendoff share: the CAs to trust, and the client certificate.
#![forbid(unsafe_code)]

mod files;
mod params;

pub use files::{Files, Identity, Words};
pub use params::{Mode, TlsParams, is_local};

use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ConfigBuilder, WantsVerifier};
use sendoff::Result;

/// The crypto provider of every connection.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Starts a client configuration.
///
/// # Errors
/// [`sendoff::ErrorKind::Invalid`] when the provider supports no version of TLS.
pub fn builder(provider: Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>> {
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| files::unusable("the TLS settings", error))
}

/// Finishes a client configuration, with the client certificate if there is one.
///
/// # Errors
/// [`sendoff::ErrorKind::Invalid`] when certificate and key do not match.
pub fn finish(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<Identity>,
) -> Result<ClientConfig> {
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(own) => builder
            .with_client_auth_cert(own.certificates, own.key)
            .map_err(|error| files::unusable("the client certificate and its key", error)),
    }
}
