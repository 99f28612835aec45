//! TLS parameters of a database URL: `sslmode`, `sslrootcert`, `sslcert` and `sslkey`, with libpq's meanings.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sendoff::{Error, ErrorKind, Result};

use crate::{Files, Words};

/// The values of `sslmode` in a database URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The connection is not encrypted.
    Disable,
    /// The connection is encrypted if the server supports it; `allow` means the same.
    Prefer,
    /// The connection is encrypted; the server is not verified.
    Require,
    /// The connection is encrypted; the server's certificate must come from a trusted CA.
    VerifyCa,
    /// The connection is encrypted; the server's certificate must come from a trusted CA and be for this host.
    VerifyFull,
}

impl Mode {
    /// Parses the value of `sslmode`. `usable` lists the values that the store supports, for the next step of the error.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an unknown value. The error does not quote it.
    pub fn parse(word: &str, usable: &str) -> Result<Self> {
        Ok(match word {
            "disable" => Self::Disable,
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(Error::new(ErrorKind::Invalid, "unknown sslmode in the database URL")
                    .next_step(format!("use {usable}")));
            }
        })
    }

    /// The default when the URL has no `sslmode`. A connection to another machine is encrypted, and the server is
    /// verified.
    pub fn default_for(is_local: bool) -> Self {
        if is_local { Self::Prefer } else { Self::VerifyFull }
    }
}

/// The TLS parameters of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsParams {
    /// The parameter `sslmode`.
    pub mode: Option<Mode>,
    /// The parameter `sslrootcert`: a PEM file with the CAs to trust. `None` or `system`: the system's CAs.
    pub root_cert: Option<PathBuf>,
    /// The parameter `sslcert`: a PEM file with the client certificate.
    pub cert: Option<PathBuf>,
    /// The parameter `sslkey`: a PEM file with the key of the client certificate.
    pub key: Option<PathBuf>,
}

impl TlsParams {
    /// Takes one parameter of the URL. Returns whether it is a TLS parameter. `usable` is as in [`Mode::parse`].
    ///
    /// # Errors
    /// As [`Mode::parse`].
    pub fn take(&mut self, name: &str, value: &str, usable: &str) -> Result<bool> {
        match name {
            "sslmode" => self.mode = Some(Mode::parse(value, usable)?),
            "sslrootcert" => self.root_cert = Some(value.into()),
            "sslcert" => self.cert = Some(value.into()),
            "sslkey" => self.key = Some(value.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The files that the parameters name.
    pub fn files(&self) -> Files<'_> {
        Files {
            authorities: self.root_cert.as_deref().filter(|path| *path != Path::new("system")),
            certificate: self.cert.as_deref(),
            key: self.key.as_deref(),
            words: Words {
                authorities: "sslrootcert in the database URL",
                certificate: "sslcert",
                key: "sslkey",
            },
        }
    }
}

/// Whether a host is this machine. An IPv6 address may be in brackets, as in a URL.
pub fn is_local(host: &str) -> bool {
    let address: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["db", "10.0.0.1", "localhost.evil.example", ""] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn an_unknown_mode_is_refused_without_being_quoted() {
        let error = TlsParams::default().take("sslmode", "hunter2", "disable").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert_eq!(error.next(), Some("use disable"));
        assert!(!TlsParams::default().take("user", "hunter2", "disable").unwrap());
    }
}
