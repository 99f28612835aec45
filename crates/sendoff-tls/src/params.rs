//! What the URL of a database says about encryption: `sslmode` and its companions, with libpq's meanings.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sendoff::{Error, ErrorKind, Result};

use crate::{Files, Words};

/// `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Not encrypted.
    Disable,
    /// Encrypted if the server can; `allow` is the same.
    Prefer,
    /// Encrypted, and nobody knows to whom.
    Require,
    /// The certificate is by an authority that is trusted.
    VerifyCa,
    /// And it is for this host.
    VerifyFull,
}

impl Mode {
    /// The mode of a word.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], without the word, for one that no mode has.
    pub fn parse(word: &str) -> Result<Self> {
        Ok(match word {
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

    /// The one for a URL that says nothing: nobody on the way to a server elsewhere can read along or pass for it.
    pub fn default_for(is_local: bool) -> Self {
        if is_local { Self::Prefer } else { Self::VerifyFull }
    }
}

/// What a URL says about encryption.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsParams {
    /// `sslmode`.
    pub mode: Option<Mode>,
    /// `sslrootcert`: certificates (PEM) of the authorities to trust; `None` or `system`: the system's.
    pub root_cert: Option<PathBuf>,
    /// `sslcert`: our own certificate (PEM).
    pub cert: Option<PathBuf>,
    /// `sslkey`: its key (PEM).
    pub key: Option<PathBuf>,
}

impl TlsParams {
    /// Takes one parameter of the URL. Whether it is one of these.
    ///
    /// # Errors
    /// As [`Mode::parse`].
    pub fn take(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "sslmode" => self.mode = Some(Mode::parse(value)?),
            "sslrootcert" => self.root_cert = Some(value.into()),
            "sslcert" => self.cert = Some(value.into()),
            "sslkey" => self.key = Some(value.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The files that it names.
    pub fn files(&self) -> Files<'_> {
        Files {
            authorities: self.root_cert.as_deref().filter(|path| *path != Path::new("system")),
            certificate: self.cert.as_deref(),
            key: self.key.as_deref(),
            words: Words {
                authorities: "sslrootcert in the database's URL",
                certificate: "sslcert",
                key: "sslkey",
            },
        }
    }
}

/// Whether a host is this machine. An address of the sixth version may stand in brackets, as in a URL.
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
        let error = TlsParams::default().take("sslmode", "hunter2").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert!(!TlsParams::default().take("user", "hunter2").unwrap());
    }
}
