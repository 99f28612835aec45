//! Whom an encrypted connection trusts, and who we are: what the stores and the sinks of Sendoff share.
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

/// The cryptography of every connection.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The beginning of a client's side.
///
/// # Errors
/// [`sendoff::ErrorKind::Invalid`] when the provider knows no version of TLS.
pub fn builder(provider: Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>> {
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| files::unusable("the TLS settings", error))
}

/// Its end: with our own certificate, if there is one.
///
/// # Errors
/// [`sendoff::ErrorKind::Invalid`] when certificate and key do not belong together.
pub fn finish(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<Identity>,
) -> Result<ClientConfig> {
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(own) => builder
            .with_client_auth_cert(own.certificates, own.key)
            .map_err(|error| files::unusable("our certificate and its key", error)),
    }
}
