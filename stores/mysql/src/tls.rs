//! Encryption of connections and verification of the server: `sslmode` and related parameters, with the same names as
//! in the PostgreSQL store.
//!
//! | `sslmode` | encrypted | the certificate |
//! |---|---|---|
//! | `disable` | no | |
//! | `allow`, `prefer` | if the server can | is not checked |
//! | `require` | yes | is not checked |
//! | `verify-full` | yes | is by an authority that is trusted, and for this host |
//!
//! Without `sslmode`, the mode is `prefer` for a server on this machine and `verify-full` for any other. So nobody on
//! the network can read the traffic or impersonate the server, unless the URL allows it.
//!
//! `verify-ca`, and `require` with `sslrootcert`, which means the same, are refused: to ignore only the host name, the
//! driver looks for a certain error text, and its TLS library uses another text.

use mysql_async::{ClientIdentity, Opts, SslOpts};
use sendoff::{Error, ErrorKind, Result};
use sendoff_tls::{Mode, TlsParams};

/// The mode that counts for this server.
pub(crate) fn mode(params: &TlsParams, opts: &Opts) -> Mode {
    match params.mode {
        // Nobody is on the way to a socket in the file system, and no server encrypts there.
        _ if opts.socket().is_some() => Mode::Disable,
        Some(mode) => mode,
        None => Mode::default_for(sendoff_tls::is_local(opts.ip_or_hostname())),
    }
}

/// The client's side of TLS; `None` when nothing is to be encrypted.
///
/// # Errors
/// [`ErrorKind::Invalid`] with the file that cannot be used, or for what the driver cannot keep.
pub(crate) fn options(params: &TlsParams, opts: &Opts) -> Result<Option<SslOpts>> {
    let options = SslOpts::default()
        .with_client_identity(identity(params)?)
        // As the certificate has it: an address of the sixth version stands in brackets only in a URL.
        .with_danger_tls_hostname_override(Some(without_brackets(opts.ip_or_hostname()).to_owned()));
    match mode(params, opts) {
        Mode::Disable => Ok(None),
        Mode::VerifyCa => Err(without_host("sslmode=verify-ca")),
        Mode::Require if params.root_cert.is_some() => Err(without_host("sslmode=require with sslrootcert")),
        Mode::Prefer | Mode::Require => Ok(Some(options.with_danger_accept_invalid_certs(true))),
        Mode::VerifyFull => {
            let authorities = params.files().authorities()?;
            let authorities = authorities.iter().map(|certificate| certificate.to_vec().into());
            Ok(Some(
                options
                    .with_disable_built_in_roots(true)
                    .with_root_certs(authorities.collect()),
            ))
        }
    }
}

/// The driver reads the files itself. They are read here as well, so that one that cannot be used is named before anybody
/// connects.
fn identity(params: &TlsParams) -> Result<Option<ClientIdentity>> {
    params.files().identity()?;
    let files = params.cert.clone().zip(params.key.clone());
    Ok(files.map(|(cert, key)| ClientIdentity::new(cert.into(), key.into())))
}

/// An authority is checked, and the host's name is not.
fn without_host(what: &str) -> Error {
    Error::new(
        ErrorKind::Invalid,
        format!("{what} is not supported for MySQL and MariaDB"),
    )
    .because("the MySQL driver can only check a certificate together with the host name")
    .next_step("use sslmode=verify-full with sslrootcert, and the host name in the certificate")
}

fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn mode(url: &str) -> Mode {
        super::mode(&TlsParams::default(), &Opts::from_url(url).unwrap())
    }

    fn refused(params: &TlsParams) -> Error {
        options(params, &Opts::from_url("mysql://a@db/x").unwrap()).unwrap_err()
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
        let without_name = TlsParams {
            mode: Some(Mode::VerifyCa),
            ..TlsParams::default()
        };
        for error in [refused(&without_name), refused(&half)] {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("sslmode=verify-full"), "{error}");
        }
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
