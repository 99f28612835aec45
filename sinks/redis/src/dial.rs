//! Connecting: to one server by a stream of our own, to a cluster by the driver's.

use std::io;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClientBuilder;
use redis::{AsyncConnectionConfig, ClientTlsConfig, IntoConnectionInfo, RedisConnectionInfo, TlsCertificates};
use rustls::pki_types::ServerName;
use sendoff::{ErrorKind, Result};
use sendoff_wire::{Dial, Refusal};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::link::Link;
use crate::{RedisConfig, error};

const PORT: u16 = 6379;

/// Makes [`Link`]s.
pub(crate) struct Dialer {
    config: RedisConfig,
    tls: Option<Arc<rustls::ClientConfig>>,
    host: String,
    port: u16,
}

impl Dialer {
    /// # Errors
    /// What is wrong with the TLS settings.
    pub(crate) fn new(config: RedisConfig) -> Result<Self> {
        let url = config.url.reveal();
        // An IPv6 address has brackets in a URL, and nowhere else.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port().unwrap_or(PORT);
        let tls = if config.is_encrypted() {
            Some(Arc::new(config.tls.clone().unwrap_or_default().client()?))
        } else {
            None
        };
        Ok(Self {
            config,
            tls,
            host,
            port,
        })
    }

    fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    async fn node(&self) -> Result<Link, Refusal> {
        let failed = |error: io::Error| error::unreachable(&self.address(), &error);
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        match &self.tls {
            None => self.introduce(stream).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(|error| failed(io::Error::other(error)))?;
                let connecting = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
                self.introduce(connecting.await.map_err(failed)?).await
            }
        }
    }

    async fn introduce(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Link, Refusal> {
        let account = self.account()?;
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(self.config.answer_timeout));
        let connected = MultiplexedConnection::new_with_config(&account, stream, config).await;
        let (connection, driver) = connected.map_err(|error| error::unwelcome(&self.address(), &error))?;
        let link = Link::node(connection, tokio::spawn(driver));
        // The driver does not look at what the server says to a client that has no password.
        match link.send(vec![redis::cmd("PING")]).await.pop() {
            Some(Ok(redis::Value::ServerError(refusal))) if refusal.code() == "NOAUTH" => {
                Err(error::unwelcome(&self.address(), &refusal.into()))
            }
            Some(Err(error)) => Err(error::unwelcome(&self.address(), &error)),
            // It talks to us. A user may lack the right to ping.
            Some(Ok(_)) | None => Ok(link),
        }
    }

    /// Who we are: user, password and database. The password is read anew each time, as it may have been changed.
    fn account(&self) -> Result<RedisConnectionInfo, Refusal> {
        let url = self.config.url.with_password(self.config.password.as_ref())?;
        let info = url.into_connection_info().map_err(|error| self.unusable(&error))?;
        Ok(info
            .redis_settings()
            .clone()
            .set_lib_name("sendoff", env!("CARGO_PKG_VERSION")))
    }

    async fn cluster(&self) -> Result<Link, Refusal> {
        let url = self.config.url.with_password(self.config.password.as_ref())?;
        let mut builder = ClusterClientBuilder::new([url])
            .connection_timeout(self.config.connect_timeout)
            .response_timeout(self.config.answer_timeout)
            // What is to be tried again is decided elsewhere: see the module `cluster`.
            .retries(0);
        if let Some(certificates) = self.certificates()? {
            // The driver builds its own TLS settings, out of the provider of the process.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
            builder = builder.certs(certificates);
        }
        let client = builder.build().map_err(|error| self.unusable(&error))?;
        let connection = client.get_async_connection().await;
        let connection = connection.map_err(|error| error::unwelcome(&self.address(), &error))?;
        Ok(Link::cluster(connection))
    }

    fn certificates(&self) -> Result<Option<TlsCertificates>, Refusal> {
        if self.tls.is_none() {
            return Ok(None);
        }
        let tls = self.config.tls.clone().unwrap_or_default();
        let read =
            |path: &std::path::Path| std::fs::read(path).map_err(|error| error::unreachable(&self.address(), &error));
        let client_tls = match (&tls.cert_file, &tls.key_file) {
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: read(cert)?,
                client_key: read(key)?,
            }),
            _ => None,
        };
        Ok(Some(TlsCertificates {
            client_tls,
            root_cert: tls.ca_pem()?,
        }))
    }

    fn unusable(&self, error: &redis::RedisError) -> Refusal {
        Refusal {
            kind: ErrorKind::Invalid,
            what: format!("the URL of Redis at {} cannot be used", self.address()),
            why: error.category().to_owned(),
            next: "write it like redis://user@host:6379/0".to_owned(),
        }
    }
}

impl Dial for Dialer {
    type Connection = Link;

    async fn dial(&self) -> Result<Link, Refusal> {
        if self.config.cluster {
            self.cluster().await
        } else {
            self.node().await
        }
    }

    fn is_usable(&self, link: &Link) -> bool {
        link.is_usable()
    }
}
