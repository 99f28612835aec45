//! How a connection is encrypted, and whom it trusts: `sslmode` and its companions, with libpq's meanings.
//!
//! | `sslmode` | encrypted | the certificate |
//! |---|---|---|
//! | `disable` | no | |
//! | `allow`, `prefer` | if the server can | is not checked |
//! | `require` | yes | is checked only if `sslrootcert` is given, and then as `verify-ca` does |
//! | `verify-ca` | yes | is by an authority that is trusted |
//! | `verify-full` | yes | is by an authority that is trusted, and for this host |
//!
//! Without `sslmode` it is `prefer` for a server on this machine and `verify-full` for any other: nobody on the way can
//! read along or pass for the server, unless the URL says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use sendoff::{Error, ErrorKind, Result};
use tokio_postgres::config::{Host, SslMode};

use crate::verify::{AnyCertificate, AnyName};

/// What a URL says about encryption.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsParams {
    pub(crate) mode: Option<Mode>,
    /// Certificates (PEM) of the authorities to trust; `None` or `system`: the system's.
    pub(crate) root_cert: Option<PathBuf>,
    /// Our own certificate (PEM) and its key (PEM).
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "disable" => Self::Disable,
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(
                    Error::new(ErrorKind::Invalid, "the database's URL has an unknown sslmode")
                        .next_step("use disable, prefer, require, verify-ca or verify-full"),
                );
            }
        })
    }

    /// The one for a URL that says nothing.
    fn default_for(driver: &tokio_postgres::Config) -> Self {
        if is_local(driver) {
            Self::Prefer
        } else {
            Self::VerifyFull
        }
    }

    fn for_driver(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

impl TlsParams {
    /// Sets the driver's mode and returns the client's side of TLS.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] with the file that cannot be used.
    pub(crate) fn apply(&self, driver: &mut tokio_postgres::Config) -> Result<ClientConfig> {
        let mode = match self.mode {
            // Nobody is on the way to a socket in the file system, and no server encrypts there.
            _ if is_socket(driver) => Mode::Disable,
            Some(mode) => mode,
            None => Mode::default_for(driver),
        };
        driver.ssl_mode(mode.for_driver());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match mode {
            Mode::Disable | Mode::Prefer => Arc::new(AnyCertificate::new(&provider)),
            Mode::Require if self.root_cert.is_none() => Arc::new(AnyCertificate::new(&provider)),
            Mode::Require | Mode::VerifyCa => Arc::new(AnyName::new(self.verifier(&provider)?)),
            Mode::VerifyFull => self.verifier(&provider)?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("the TLS settings", error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        match (&self.cert, &self.key) {
            (None, None) => Ok(builder.with_no_client_auth()),
            (Some(cert), Some(key)) => {
                let certificates = certificates(cert)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| unusable(&format!("the key file {}", key.display()), error))?;
                builder
                    .with_client_auth_cert(certificates, key)
                    .map_err(|error| unusable("our certificate and its key", error))
            }
            (Some(_), None) | (None, Some(_)) => Err(Error::new(
                ErrorKind::Invalid,
                "the database's URL has only one of sslcert and sslkey",
            )
            .next_step("give both, or none")),
        }
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>> {
        let mut roots = RootCertStore::empty();
        match self.root_cert.as_deref().filter(|path| *path != Path::new("system")) {
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
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Invalid, "there is no authority to trust for the database")
                    .because(error.to_string())
                    .next_step("install the system's certificates (ca-certificates), or set sslrootcert in its URL")
                    .with_source(error)
            })
    }
}

fn is_socket(driver: &tokio_postgres::Config) -> bool {
    let is_socket = |host: &Host| match host {
        Host::Tcp(_) => false,
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    !driver.get_hosts().is_empty() && driver.get_hosts().iter().all(is_socket)
}

/// Whether all servers are on this machine.
fn is_local(driver: &tokio_postgres::Config) -> bool {
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            let address: Option<std::net::IpAddr> = name.parse().ok();
            name.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    // Where addresses are given, names are only what certificates are checked against.
    if driver.get_hostaddrs().is_empty() {
        driver.get_hosts().iter().all(is_local)
    } else {
        driver.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback)
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
        .next_step("give PEM files that this process can read")
        .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(url: &str) -> (Mode, SslMode) {
        let mut driver: tokio_postgres::Config = url.parse().unwrap();
        let mode = Mode::default_for(&driver);
        // Roots of the system may be missing where this runs; the driver's mode is set before they are read.
        let _ = TlsParams::default().apply(&mut driver);
        (mode, driver.get_ssl_mode())
    }

    #[test]
    fn a_server_elsewhere_is_verified_unless_the_url_says_otherwise() {
        for url in [
            "postgres://db/x",
            "host=10.0.0.1",
            "postgres://localhost.evil.example/x",
            "host=localhost,db",
        ] {
            assert_eq!(applied(url), (Mode::VerifyFull, SslMode::Require), "{url}");
        }
        assert_eq!(applied("host=localhost hostaddr=10.0.0.1").0, Mode::VerifyFull);
        for url in [
            "postgres://localhost/x",
            "host=127.0.0.1",
            "postgres://[::1]/x",
            "host=db hostaddr=127.0.0.1",
        ] {
            assert_eq!(applied(url), (Mode::Prefer, SslMode::Prefer), "{url}");
        }
        assert_eq!(applied("host=/run/postgresql").1, SslMode::Disable);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let params = TlsParams {
            mode: Some(Mode::VerifyCa),
            root_cert: Some("/nowhere/ca.pem".into()),
            ..TlsParams::default()
        };
        let error = params.apply(&mut "host=db".parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    }
}
