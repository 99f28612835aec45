//! Encrypted connections whose far side is who it says it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use sendoff::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

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
    /// [`ErrorKind::Invalid`] with the file that cannot be used.
    pub fn client(&self) -> Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("the TLS settings", error))?
            .with_root_certificates(self.roots()?);
        match (&self.cert_file, &self.key_file) {
            (None, None) => Ok(builder.with_no_client_auth()),
            (Some(cert), Some(key)) => {
                let certificates = certificates(cert)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| unusable(&format!("the key file {}", key.display()), error))?;
                builder
                    .with_client_auth_cert(certificates, key)
                    .map_err(|error| unusable("our certificate and its key", error))
            }
            _ => Err(
                Error::new(ErrorKind::Invalid, "TLS has only one of cert_file and key_file")
                    .next_step("give both, or none"),
            ),
        }
    }

    /// The certificates of `ca_file`, for drivers that take them as text.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the file cannot be read.
    pub fn ca_pem(&self) -> Result<Option<Vec<u8>>> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| unusable(&format!("the file {}", path.display()), error))
        };
        self.ca_file.as_ref().map(read).transpose()
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match &self.ca_file {
            Some(path) => {
                for certificate in certificates(path)? {
                    roots
                        .add(certificate)
                        .map_err(|error| unusable(&format!("a certificate in {}", path.display()), error))?;
                }
            }
            // Some of the system's may be out of use; the others still work.
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "TLS has no authority to trust")
                .next_step("install the system's certificates (ca-certificates), or set ca_file"));
        }
        Ok(roots)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(&format!("the certificate file {}", path.display()), error))
}

fn unusable(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Invalid, format!("{what} cannot be used"))
        .because(error.to_string())
        .next_step("give PEM files that the relay's user can read")
        .with_source(error)
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_file_without_certificates_trusts_nobody() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let tls = TlsConfig {
            ca_file: Some(file.path().into()),
            ..TlsConfig::default()
        };
        assert!(tls.client().unwrap_err().to_string().contains("no authority"));
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let tls = TlsConfig {
            cert_file: Some("cert.pem".into()),
            ..TlsConfig::default()
        };
        let error = tls.client().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}
