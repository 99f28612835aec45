//! Encryption for a server that has none: a TCP proxy that speaks TLS to clients.

#![allow(clippy::expect_used, reason = "a test without its proxy fails")]

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::servers::Certificate;

/// A proxy in front of one server. Dropping it ends its connections.
pub struct TlsProxy {
    port: u16,
    _carrying: JoinSet<()>,
}

impl TlsProxy {
    /// Starts one that shows this certificate, and passes everything to this port of this machine.
    pub async fn start(server_port: u16, certificate: &Certificate) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(server_config(certificate)));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let mut carrying = JoinSet::new();
        carrying.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, acceptor.clone(), server_port));
            }
        });
        Self {
            port,
            _carrying: carrying,
        }
    }

    /// Where clients connect.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// A client that goes away in the handshake, and a server that is down, end the connection and nothing else.
async fn carry(client: TcpStream, acceptor: TlsAcceptor, server_port: u16) {
    let _ = client.set_nodelay(true);
    let Ok(mut client) = acceptor.accept(client).await else {
        return;
    };
    if let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port)).await {
        let _ = server.set_nodelay(true);
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

fn server_config(certificate: &Certificate) -> ServerConfig {
    let own = CertificateDer::from_pem_slice(certificate.cert_pem.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(certificate.key_pem.as_bytes()).expect("its key");
    ServerConfig::builder_with_provider(Arc::new(crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![own], key)
        .expect("a certificate and its key")
}
