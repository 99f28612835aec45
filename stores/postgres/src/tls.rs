//! Encryption of connections and verification of the server: `sslmode` and related parameters, with libpq's meanings.
//!
//! | `sslmode` | encrypted | the certificate |
//! |---|---|---|
//! | `disable` | no | |
//! | `allow`, `prefer` | if the server can | is not checked |
//! | `require` | yes | is checked only if `sslrootcert` is given, and then as `verify-ca` does |
//! | `verify-ca` | yes | is by an authority that is trusted |
//! | `verify-full` | yes | is by an authority that is trusted, and for this host |
//!
//! Without `sslmode`, the mode is `prefer` for a server on this machine and `verify-full` for any other. So nobody on
//! the network can read the traffic or impersonate the server, unless the URL allows it.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use sendoff::{Error, ErrorKind, Result};
use sendoff_tls::{Mode, TlsParams};
use tokio_postgres::config::{Host, SslMode};

use crate::verify::{AnyCertificate, AnyName};

/// Sets the driver's mode and returns the client's side of TLS.
///
/// # Errors
/// [`ErrorKind::Invalid`] with the file that cannot be used.
pub(crate) fn apply(params: &TlsParams, driver: &mut tokio_postgres::Config) -> Result<ClientConfig> {
    let mode = match params.mode {
        // Nobody is on the way to a socket in the file system, and no server encrypts there.
        _ if is_socket(driver) => Mode::Disable,
        Some(mode) => mode,
        None => Mode::default_for(is_local(driver)),
    };
    driver.ssl_mode(match mode {
        Mode::Disable => SslMode::Disable,
        Mode::Prefer => SslMode::Prefer,
        Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
    });
    let provider = sendoff_tls::provider();
    let verifier: Arc<dyn ServerCertVerifier> = match mode {
        Mode::Disable | Mode::Prefer => Arc::new(AnyCertificate::new(&provider)),
        Mode::Require if params.root_cert.is_none() => Arc::new(AnyCertificate::new(&provider)),
        Mode::Require | Mode::VerifyCa => Arc::new(AnyName::new(verifier(params, &provider)?)),
        Mode::VerifyFull => verifier(params, &provider)?,
    };
    let builder = sendoff_tls::builder(provider)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    sendoff_tls::finish(builder, params.files().identity()?)
}

fn verifier(params: &TlsParams, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>> {
    let roots = Arc::new(params.files().roots()?);
    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                "the certificate authorities for the database cannot be loaded",
            )
            .because(error.to_string())
            .next_step("check sslrootcert in the database's URL")
            .with_source(error)
        })
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
        Host::Tcp(name) => sendoff_tls::is_local(name),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(url: &str) -> (Mode, SslMode) {
        let mut driver: tokio_postgres::Config = url.parse().unwrap();
        let mode = Mode::default_for(is_local(&driver));
        // Roots of the system may be missing where this runs; the driver's mode is set before they are read.
        let _ = apply(&TlsParams::default(), &mut driver);
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
        let error = apply(&params, &mut "host=db".parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    }
}
