//! What a test may change about a server.

use super::Certificate;

/// How a private server is set up beyond its defaults.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Lines for the end of the server's own configuration file.
    pub lines: Vec<String>,
    /// Offer TLS with this certificate, too.
    pub tls: Option<Certificate>,
    /// With TLS, only clients get in that show a certificate of the same authority.
    pub client_certificates: bool,
}

impl Options {
    /// With these lines in the configuration file.
    pub fn lines(lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            lines: lines.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// With TLS.
    pub fn tls(certificate: Certificate) -> Self {
        Self {
            tls: Some(certificate),
            ..Self::default()
        }
    }

    /// With TLS, and only for clients that show a certificate of the same authority.
    pub fn mutual_tls(certificate: Certificate) -> Self {
        Self {
            client_certificates: true,
            ..Self::tls(certificate)
        }
    }
}
