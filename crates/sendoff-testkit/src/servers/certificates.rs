//! Certificates for servers that live as long as a test.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
use sendoff_wire::TlsConfig;

/// An authority that only this test trusts.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key and its authority, as PEM.
#[derive(Clone)]
pub struct Certificate {
    /// Who vouches for it.
    pub ca_pem: String,
    /// The certificate.
    pub cert_pem: String,
    /// Its key.
    pub key_pem: String,
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // A name of its own: OpenSSL takes a certificate for self-signed when it is called like its issuer.
        params.distinguished_name = DistinguishedName::new();
        let name = format!("test authority {:x}", fastrand::u64(..));
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key is generated");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority signs itself");
        Self { issuer }
    }

    /// What a client has to trust.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for these host names or addresses.
    pub fn certificate(&self, hosts: &[&str]) -> Certificate {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        self.sign(&CertificateParams::new(hosts).expect("host names"))
    }

    /// A certificate for a client of this name.
    pub fn client_certificate(&self, name: &str) -> Certificate {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        self.sign(&params)
    }

    /// Settings of three clients that trust it, and whether a server lets them in that asks for certificates of it: one who shows
    /// such a certificate, one who shows none, one who shows a stranger's. The files are in `folder`.
    pub fn clients(&self, folder: &Path) -> [(TlsConfig, bool); 3] {
        let known = self.client_certificate("relay");
        let stranger = Certificate {
            ca_pem: self.pem(),
            ..Self::new().client_certificate("relay")
        };
        [
            (known.settings(&folder.join("known"), true), true),
            (known.settings(&folder.join("silent"), false), false),
            (stranger.settings(&folder.join("stranger"), true), false),
        ]
    }

    fn sign(&self, params: &CertificateParams) -> Certificate {
        let key = KeyPair::generate().expect("a key is generated");
        let certificate = params.signed_by(&key, &self.issuer).expect("the authority signs");
        Certificate {
            ca_pem: self.pem(),
            cert_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }
}

impl Certificate {
    /// Settings of a sink that trusts the certificate's authority; `shown`, it shows the certificate as its own. The files are
    /// in `folder`.
    pub fn settings(&self, folder: &Path, shown: bool) -> TlsConfig {
        std::fs::create_dir_all(folder).expect("the test's folder takes another");
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("the test's folder takes a certificate");
            Some(path)
        };
        let ca_file = file("trusted.pem", &self.ca_pem);
        let (cert_file, key_file) = if shown {
            (file("client.pem", &self.cert_pem), file("client.key", &self.key_pem))
        } else {
            (None, None)
        };
        TlsConfig {
            ca_file,
            cert_file,
            key_file,
        }
    }

    /// Writes `ca.pem`, `server.pem` and `server.key`, where the servers' configurations look for them.
    pub(super) fn write_to(&self, folder: &Path) {
        for (name, text) in [
            ("ca.pem", &self.ca_pem),
            ("server.pem", &self.cert_pem),
            ("server.key", &self.key_pem),
        ] {
            std::fs::write(folder.join(name), text).expect("the test's folder takes a certificate");
        }
    }
}
