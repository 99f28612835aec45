//! One connection to the server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::PostgresConfig;
use crate::error::{from_driver, timed_out};
use crate::hosts::{address, one_by_one};
use crate::{tls, url};

/// An encrypted stream, where it is encrypted.
type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The next step when a server does not answer a new connection in time.
const CONNECT_SLOW: &str = "check that the database is running and reachable, or raise connect_timeout";

/// Opens connections to PostgreSQL. Only this type knows about transport.
#[derive(Clone)]
pub struct Connector {
    /// The driver's settings for each host.
    hosts: Vec<tokio_postgres::Config>,
    /// The one that was last connected to: it is tried first.
    last: Arc<AtomicUsize>,
    tls: MakeRustlsConnect,
    connect_timeout: Duration,
}

impl Connector {
    /// Creates a connector with these settings.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when they cannot be used.
    pub fn new(config: &PostgresConfig) -> Result<Self> {
        let (rest, params) = url::split(&config.url)?;
        let mut driver: tokio_postgres::Config = rest
            .parse()
            .map_err(|error| from_driver("the PostgreSQL store cannot be set up", error))?;
        driver
            .application_name(&config.application_name)
            .connect_timeout(config.connect_timeout)
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(30))
            .keepalives_interval(Duration::from_secs(10))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(30));
        if config.connect_timeout.is_zero() || config.statement_timeout.is_zero() {
            return Err(Error::new(ErrorKind::Invalid, "the PostgreSQL store cannot be set up")
                .because("connect_timeout or statement_timeout is zero")
                .next_step("set both to more than zero"));
        }
        let tls = MakeRustlsConnect::new(tls::apply(&params, &mut driver)?);
        Ok(Self {
            hosts: one_by_one(&driver),
            last: Arc::default(),
            tls,
            connect_timeout: config.connect_timeout,
        })
    }

    /// The two halves of a new connection; the second has to be polled for the first to work.
    pub(crate) async fn dial(&self) -> Result<(Client, Connection<Socket, TlsStream>)> {
        let mut failed = None;
        let first = self.last.load(Ordering::Relaxed);
        for at in (0..self.hosts.len()).map(|n| (first + n) % self.hosts.len()) {
            let host = &self.hosts[at];
            let what = format!("cannot connect to the database {}", address(host));
            // The driver's own limit ends with the socket's connection; a server that accepts and says nothing needs this one.
            match timeout(self.connect_timeout, host.connect(self.tls.clone())).await {
                Ok(Ok(connected)) => {
                    self.last.store(at, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Err(error)) => failed = Some(from_driver(&what, error)),
                Err(_) => failed = Some(timed_out(&what, self.connect_timeout).next_step(CONNECT_SLOW)),
            }
        }
        Err(failed.unwrap_or_else(|| {
            Error::new(ErrorKind::Invalid, "cannot connect to the database")
                .because("the URL names no host")
                .next_step("write the URL like postgres://user:password@host:5432/database")
        }))
    }

    /// A connection that a task of its own keeps going.
    pub(crate) async fn connect(&self) -> Result<Session> {
        let (client, connection) = self.dial().await?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(event = "connection_ended", %error, "connection to the database ended");
            }
        });
        Ok(Session {
            client,
            driver,
            busy: AtomicBool::new(false),
        })
    }
}

/// Without the driver's settings: they hold the password.
impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// A connection. Dropped while an answer is missing, it closes the socket immediately: the answer is not needed any more, and
/// the server may never send it. Dropped otherwise, it ends the session cleanly. Either way the server rolls back an open
/// transaction.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    driver: JoinHandle<()>,
    busy: AtomicBool,
}

impl Session {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Notes whether an answer is missing.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.busy.load(Ordering::Relaxed) {
            self.driver.abort();
        }
    }
}
