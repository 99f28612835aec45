//! Certificates and keys out of PEM files.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sendoff::{Error, ErrorKind, Result};

/// What the settings are called where they are made, for errors.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// The file of authorities.
    pub authorities: &'static str,
    /// The file of our own certificate.
    pub certificate: &'static str,
    /// The file of its key.
    pub key: &'static str,
}

/// Files (PEM) that say whom to trust and who we are.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// Certificates of the authorities to trust; `None`: the system's.
    pub authorities: Option<&'a Path>,
    /// Our own certificate, for servers that ask for one.
    pub certificate: Option<&'a Path>,
    /// The key of our own certificate.
    pub key: Option<&'a Path>,
    /// What they are called.
    pub words: Words,
}

/// Our own certificate with those that vouch for it, and its key.
#[derive(Debug)]
pub struct Identity {
    /// Ours first.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The key of ours.
    pub key: PrivateKeyDer<'static>,
}

impl Files<'_> {
    /// The authorities to trust, at least one.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] with the file that cannot be used, or when there are none.
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
            // Some of the system's may be out of use; the others still work.
            None => {
                let mut found = rustls_native_certs::load_native_certs().certs;
                found.retain(|certificate| is_usable(certificate).is_ok());
                found
            }
        };
        if found.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "there is no authority to trust")
                .because("no certificate was found")
                .next_step(format!(
                    "install the system's certificates (ca-certificates), or set {}",
                    self.words.authorities
                )));
        }
        Ok(found)
    }

    /// The same, as rustls takes them.
    ///
    /// # Errors
    /// As [`Files::authorities`].
    pub fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.authorities()?);
        Ok(roots)
    }

    /// Who we are, if we say so.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] with the file that cannot be used, or for one file without the other.
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
                    format!("there is only one of {certificate} and {key}"),
                )
                .next_step("give both, or none"))
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
    Error::new(ErrorKind::Invalid, format!("{what} cannot be used"))
        .because(error.to_string())
        .next_step("give PEM files that this process can read")
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
            error.to_string().contains("no authority") && error.to_string().contains("ca_file"),
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
