//! Certificates and keys from PEM files.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sendoff::{Error, ErrorKind, Result};

/// The names of the TLS settings, for error texts.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// The name of the setting for the CA certificates file.
    pub authorities: &'static str,
    /// The name of the setting for the client certificate file.
    pub certificate: &'static str,
    /// The name of the setting for the client key file.
    pub key: &'static str,
}

/// PEM files: the CAs to trust, and the client certificate.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// The file with certificates of the CAs to trust; `None`: the system's.
    pub authorities: Option<&'a Path>,
    /// The file with the client certificate, for servers that require one.
    pub certificate: Option<&'a Path>,
    /// The file with the key of the client certificate.
    pub key: Option<&'a Path>,
    /// The names of the TLS settings, for error texts.
    pub words: Words,
}

/// A client certificate with its chain, and its key.
#[derive(Debug)]
pub struct Identity {
    /// The client certificate, followed by the certificates of its chain.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The key of the client certificate.
    pub key: PrivateKeyDer<'static>,
}

impl Files<'_> {
    /// The CAs to trust, at least one.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] naming the file that cannot be used, or when there is no CA.
    pub fn authorities(&self) -> Result<Vec<CertificateDer<'static>>> {
        let is_usable = |certificate: &CertificateDer<'static>| RootCertStore::empty().add(certificate.clone());
        let found = match self.authorities {
            Some(path) => {
                let found = certificates(path)?;
                for certificate in &found {
                    is_usable(certificate)
                        .map_err(|error| unusable(&format!("a certificate in {}", path.display()), error))?;
                }
                found
            }
            // Some of the system's certificates may be unusable; the others still work.
            None => {
                let mut found = rustls_native_certs::load_native_certs().certs;
                found.retain(|certificate| is_usable(certificate).is_ok());
                found
            }
        };
        if found.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "there is no CA certificate to trust")
                .because("no usable certificate was found")
                .next_step(format!(
                    "install the system's CA certificates (package ca-certificates), or set {}",
                    self.words.authorities
                )));
        }
        Ok(found)
    }

    /// The CAs to trust, as a rustls root store.
    ///
    /// # Errors
    /// As [`Files::authorities`].
    pub fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.authorities()?);
        Ok(roots)
    }

    /// The client certificate and key, if both are set.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] naming the file that cannot be used, or when only one of the two is set.
    pub fn identity(&self) -> Result<Option<Identity>> {
        match (self.certificate, self.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(Identity {
                certificates: certificates(certificate)?,
                key: PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| unusable(&format!("the key file {}", key.display()), error))?,
            })),
            (Some(_), None) | (None, Some(_)) => {
                let Words { certificate, key, .. } = self.words;
                Err(Error::new(
                    ErrorKind::Invalid,
                    format!("only one of {certificate} and {key} is set"),
                )
                .next_step("set both, or neither"))
            }
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(&format!("the certificate file {}", path.display()), error))
}

pub(crate) fn unusable(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Invalid, format!("cannot use {what}"))
        .because(error.to_string())
        .next_step("use PEM files that this process can read")
        .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words = Words {
        authorities: "ca_file",
        certificate: "cert_file",
        key: "key_file",
    };

    fn files<'a>(authorities: Option<&'a Path>, certificate: Option<&'a Path>, key: Option<&'a Path>) -> Files<'a> {
        Files {
            authorities,
            certificate,
            key,
            words: WORDS,
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let nowhere = Some(Path::new("/nowhere/ca.pem"));
        for error in [
            files(nowhere, None, None).roots().map(drop).unwrap_err(),
            files(None, nowhere, nowhere).identity().map(drop).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
        }
    }

    #[test]
    fn a_file_without_certificates_trusts_nobody() {
        let empty = tempfile::NamedTempFile::new().unwrap();
        let error = files(Some(empty.path()), None, None).authorities().unwrap_err();
        assert!(
            error.to_string().contains("no CA certificate") && error.to_string().contains("ca_file"),
            "{error}"
        );
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let error = files(None, Some(Path::new("cert.pem")), None)
            .identity()
            .map(drop)
            .unwrap_err();
        assert!(error.to_string().contains("cert_file and key_file"), "{error}");
    }
}
