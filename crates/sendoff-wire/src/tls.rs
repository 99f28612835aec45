//! Encrypted connections whose far side is who it says it is.

use std::path::PathBuf;

use rustls::ClientConfig;
use sendoff::Result;
use sendoff_tls::{Files, Words};
use serde::{Deserialize, Serialize};

/// What the files are called in the configuration.
const WORDS: Words = Words {
    authorities: "ca_file",
    certificate: "cert_file",
    key: "key_file",
};

/// Whom to trust, and who we are. The host name is always verified; there is no switch that turns it off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Certificates (PEM) of the authorities to trust, instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Our own certificate (PEM), for servers that ask for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// The key (PEM) of our own certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
}

impl TlsConfig {
    /// What a driver built on rustls takes.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::Invalid`] with the file that cannot be used.
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
