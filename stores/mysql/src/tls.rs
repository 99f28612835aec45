//! How a connection is encrypted, and whom it trusts: `sslmode` and its companions, in the words of the PostgreSQL store.
//!
//! | `sslmode` | encrypted | the certificate |
//! |---|---|---|
//! | `disable` | no | |
//! | `allow`, `prefer` | if the server can | is not checked |
//! | `require` | yes | is not checked |
//! | `verify-full` | yes | is by an authority that is trusted, and for this host |
//!
//! Without `sslmode` it is `prefer` for a server on this machine and `verify-full` for any other: nobody on the way can
//! read along or pass for the server, unless the URL says so.
//!
//! `verify-ca`, and `require` with `sslrootcert`, which means the same, are refused: the driver looks for the name of an
//! error that its TLS library words in another way, so it cannot leave out the host's name alone.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use mysql_async::{ClientIdentity, Opts, SslOpts};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sendoff::{Error, ErrorKind, Result};

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
    VerifyFull,
}

impl Mode {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "disable" => Self::Disable,
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => return Err(without_host("sslmode=verify-ca")),
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(
                    Error::new(ErrorKind::Invalid, "the database's URL has an unknown sslmode")
                        .next_step("use disable, prefer, require or verify-full"),
                );
            }
        })
    }
}

impl TlsParams {
    /// The mode that counts for this server.
    pub(crate) fn mode(&self, opts: &Opts) -> Mode {
        match self.mode {
            // Nobody is on the way to a socket in the file system, and no server encrypts there.
            _ if opts.socket().is_some() => Mode::Disable,
            Some(mode) => mode,
            None if is_local(opts.ip_or_hostname()) => Mode::Prefer,
            None => Mode::VerifyFull,
        }
    }

    /// The client's side of TLS; `None` when nothing is to be encrypted.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] with the file that cannot be used, or for what the driver cannot keep.
    pub(crate) fn options(&self, opts: &Opts) -> Result<Option<SslOpts>> {
        let mode = self.mode(opts);
        let options = SslOpts::default()
            .with_client_identity(self.identity()?)
            // As the certificate has it: an address of the sixth version stands in brackets only in a URL.
            .with_danger_tls_hostname_override(Some(without_brackets(opts.ip_or_hostname()).to_owned()));
        match mode {
            Mode::Disable => Ok(None),
            Mode::Require if self.root_cert.is_some() => Err(without_host("sslmode=require with sslrootcert")),
            Mode::Prefer | Mode::Require => Ok(Some(options.with_danger_accept_invalid_certs(true))),
            Mode::VerifyFull => {
                Ok(Some(options.with_disable_built_in_roots(true).with_root_certs(
                    self.authorities()?.into_iter().map(Into::into).collect(),
                )))
            }
        }
    }

    fn identity(&self) -> Result<Option<ClientIdentity>> {
        match (&self.cert, &self.key) {
            (None, None) => Ok(None),
            (Some(cert), Some(key)) => {
                // Read here as well, so that a file that cannot be used is named before anybody connects.
                certificates(cert)?;
                PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| unusable(&format!("the key file {}", key.display()), error))?;
                Ok(Some(ClientIdentity::new(cert.clone().into(), key.clone().into())))
            }
            (Some(_), None) | (None, Some(_)) => Err(Error::new(
                ErrorKind::Invalid,
                "the database's URL has only one of sslcert and sslkey",
            )
            .next_step("give both, or none")),
        }
    }

    /// As DER, one by one.
    fn authorities(&self) -> Result<Vec<Vec<u8>>> {
        let found = match self.root_cert.as_deref().filter(|path| *path != Path::new("system")) {
            Some(path) => {
                let found = certificates(path)?;
                for certificate in &found {
                    check(certificate)
                        .map_err(|error| unusable(&format!("a certificate in {}", path.display()), error))?;
                }
                found
            }
            // Some of the system's may be out of use; the others still work.
            None => {
                let mut found = rustls_native_certs::load_native_certs().certs;
                found.retain(|certificate| check(certificate).is_ok());
                found
            }
        };
        if found.is_empty() {
            return Err(
                Error::new(ErrorKind::Invalid, "there is no authority to trust for the database")
                    .because("no certificate was found")
                    .next_step("install the system's certificates (ca-certificates), or set sslrootcert in its URL"),
            );
        }
        Ok(found.iter().map(|certificate| certificate.to_vec()).collect())
    }
}

/// An authority is checked, and the host's name is not.
fn without_host(what: &str) -> Error {
    Error::new(
        ErrorKind::Invalid,
        format!("{what} is not offered for MySQL and MariaDB"),
    )
    .because("the driver checks a certificate with its host's name, or not at all")
    .next_step("use sslmode=verify-full with sslrootcert, and the host name that is in the certificate")
}

fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

fn is_local(host: &str) -> bool {
    let address: Option<IpAddr> = without_brackets(host).parse().ok();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(&format!("the certificate file {}", path.display()), error))
}

fn check(certificate: &CertificateDer<'static>) -> Result<(), rustls::Error> {
    RootCertStore::empty().add(certificate.clone())
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

    fn mode(url: &str) -> Mode {
        TlsParams::default().mode(&Opts::from_url(url).unwrap())
    }

    fn refused(params: &TlsParams) -> Error {
        params.options(&Opts::from_url("mysql://a@db/x").unwrap()).unwrap_err()
    }

    #[test]
    fn a_server_elsewhere_is_verified_unless_the_url_says_otherwise() {
        for elsewhere in [
            "mysql://a@db/x",
            "mysql://a@10.0.0.1/x",
            "mysql://a@localhost.evil.example/x",
        ] {
            assert_eq!(mode(elsewhere), Mode::VerifyFull, "{elsewhere}");
        }
        for local in [
            "mysql://a@localhost/x",
            "mysql://a@127.0.0.1/x",
            "mysql://a@[::1]:3306/x",
        ] {
            assert_eq!(mode(local), Mode::Prefer, "{local}");
        }
        assert_eq!(mode("mysql://a@localhost/x?socket=/run/db.sock"), Mode::Disable);
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_what_to_do() {
        let half = TlsParams {
            mode: Some(Mode::Require),
            root_cert: Some("ca.pem".into()),
            ..TlsParams::default()
        };
        for error in [Mode::parse("verify-ca").unwrap_err(), refused(&half)] {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("sslmode=verify-full"), "{error}");
        }
        assert!(Mode::parse("maybe").unwrap_err().to_string().contains("prefer"));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let path = || Some(PathBuf::from("/nowhere/ca.pem"));
        let mode = Some(Mode::VerifyFull);
        let root = TlsParams {
            mode,
            root_cert: path(),
            ..TlsParams::default()
        };
        let identity = TlsParams {
            mode,
            cert: path(),
            key: path(),
            ..TlsParams::default()
        };
        for params in [root, identity] {
            let error = refused(&params);
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
        }
        let only_one = TlsParams {
            mode,
            cert: path(),
            ..TlsParams::default()
        };
        assert!(refused(&only_one).to_string().contains("sslkey"));
    }
}
