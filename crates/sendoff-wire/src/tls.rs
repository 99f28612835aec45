//! TLS settings of a sink.

use std::path::PathBuf;

use rustls::ClientConfig;
use sendoff::Result;
use sendoff_tls::{Files, Words};
use serde::{Deserialize, Serialize};

/// The names of the settings, for errors.
const WORDS: Words = Words {
    authorities: "ca_file",
    certificate: "cert_file",
    key: "key_file",
};

/// Which CAs to trust, and which client certificate to present. The host name is always verified; no setting disables
/// that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Certificates (PEM) of the CAs to trust, instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The client certificate (PEM), for servers that require one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The key (PEM) of the client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
}

impl TlsConfig {
    /// The configuration for drivers built on rustls.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] naming the file that cannot be used.
    pub fn client(&self) -> Result<ClientConfig> {
        let files = Files {
            authorities: self.ca_file.as_deref(),
            certificate: self.cert_file.as_deref(),
            key: self.key_file.as_deref(),
            words: WORDS,
        };
        let builder = sendoff_tls::builder(sendoff_tls::provider())?.with_root_certificates(files.roots()?);
        sendoff_tls::finish(builder, files.identity()?)
    }
}

#[cfg(test)]
mod tests {
    use sendoff::ErrorKind;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let tls = TlsConfig {
            ca_file: Some("/nowhere/ca.pem".into()),
            ..TlsConfig::default()
        };
        let error = tls.client().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    }
}
