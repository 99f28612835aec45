//! Connecting to a server, with this crate's TLS instead of the driver's.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, IntoConnectionInfo, RedisConnectionInfo};
use rustls::pki_types::ServerName;
use sendoff::{ErrorKind, Result};
use sendoff_wire::{Connect, Refusal};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::cluster::{Address, Cluster};
use crate::connection::Connection;
use crate::link::Link;
use crate::{RedisConfig, error};

const PORT: u16 = 6379;

/// Opens [`Connection`]s.
#[derive(Clone)]
pub(crate) struct Connector {
    config: Arc<RedisConfig>,
    tls: Option<Arc<rustls::ClientConfig>>,
    address: Address,
}

impl Connector {
    /// # Errors
    /// When the TLS settings cannot be used.
    pub(crate) fn new(config: RedisConfig) -> Result<Self> {
        let url = config.url.reveal();
        // An IPv6 address has brackets only in a URL.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).into();
        let port = url.port().unwrap_or(PORT);
        let tls = if config.is_encrypted() {
            Some(Arc::new(config.tls.clone().unwrap_or_default().client()?))
        } else {
            None
        };
        Ok(Self {
            config: Arc::new(config),
            tls,
            address: Address { host, port },
        })
    }

    /// The same for another server.
    pub(crate) fn at(&self, address: &Address) -> Self {
        Self {
            address: address.clone(),
            ..self.clone()
        }
    }

    pub(crate) fn address(&self) -> Address {
        self.address.clone()
    }

    /// How long connecting may take.
    pub(crate) fn patience(&self) -> Duration {
        self.config.connect_timeout
    }

    /// Connects to the server, once.
    pub(crate) async fn server(&self) -> Result<Link, Refusal> {
        let failed = |error: io::Error| error::unreachable(&self.address.to_string(), &error);
        let stream = TcpStream::connect((&*self.address.host, self.address.port))
            .await
            .map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        match &self.tls {
            None => self.introduce(stream).await,
            Some(tls) => {
                let name = ServerName::try_from(self.address.host.to_string())
                    .map_err(|error| failed(io::Error::other(error)))?;
                let connecting = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
                self.introduce(connecting.await.map_err(failed)?).await
            }
        }
    }

    async fn introduce(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Link, Refusal> {
        let account = self.account()?;
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(self.config.answer_timeout));
        let connected = MultiplexedConnection::new_with_config(&account, stream, config).await;
        let (connection, driver) = connected.map_err(|error| error::unwelcome(&self.address.to_string(), &error))?;
        let link = Link::new(connection, tokio::spawn(driver));
        // The driver ignores the answer of the server to a client without a password.
        match link.ping().await {
            Ok(redis::Value::ServerError(refusal)) if refusal.code() == "NOAUTH" => {
                Err(error::unwelcome(&self.address.to_string(), &refusal.into()))
            }
            Err(error) => Err(error::unwelcome(&self.address.to_string(), &error)),
            // The server answered. A user may not be allowed to ping.
            Ok(_) => Ok(link),
        }
    }

    /// User, password and database. The password is read each time, because it may have changed.
    fn account(&self) -> Result<RedisConnectionInfo, Refusal> {
        let mut url = self.config.url.with_password(self.config.password.as_ref())?;
        if self.tls.is_some() {
            // The stream is already encrypted, and the driver is built without TLS.
            let _ = url.set_scheme("redis");
        }
        let info = url.into_connection_info().map_err(|error| self.unusable(&error))?;
        Ok(info
            .redis_settings()
            .clone()
            .set_lib_name("sendoff", env!("CARGO_PKG_VERSION")))
    }

    fn unusable(&self, error: &redis::RedisError) -> Refusal {
        Refusal {
            kind: ErrorKind::Invalid,
            what: format!("`url` of the Redis sink ({}) is invalid", self.address),
            why: error.category().to_owned(),
            next: "use a URL like redis://user@host:6379/0".to_owned(),
        }
    }
}

impl Connect for Connector {
    type Connection = Connection;

    async fn connect(&self) -> Result<Connection, Refusal> {
        if self.config.cluster {
            Cluster::find(self).await.map(Connection::Cluster)
        } else {
            self.server().await.map(Connection::Server)
        }
    }

    fn address(&self) -> String {
        self.address.to_string()
    }

    fn is_usable(&self, connection: &Connection) -> bool {
        connection.is_usable()
    }
}
