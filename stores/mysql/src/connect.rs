//! One connection to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error as MysqlError, Opts, OptsBuilder};
use sendoff::{Error, ErrorKind, Result};
use sendoff_tls::{Mode, TlsParams};
use tokio::time::timeout;

use crate::config::MysqlConfig;
use crate::error::{bad_url, from_driver, timed_out};
use crate::{tls, url};

/// The next step when a server does not answer a new connection in time.
const CONNECT_SLOW: &str = "check that the database is running and reachable, or raise connect_timeout";
const SET_UP: &str = "the MySQL store cannot be set up";

/// What every session of ours starts with, whatever the server is set to. READ COMMITTED: no locks on the gaps between
/// rows, so emitting, settling and operators' actions do not meet where there is nothing.
const SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// MySQL would tell the last number of a table as it was a day ago. MariaDB passes over this.
const FRESH_NUMBERS: &str = "/*!80003 , information_schema_stats_expiry = 0 */";

/// Whether the server takes writes.
const IS_READ_ONLY: &str = "SELECT @@global.read_only";

/// Opens connections to MySQL. Only this type knows about transport.
#[derive(Debug, Clone)]
pub struct Connector {
    hosts: Arc<[Host]>,
    /// The one that was last connected to: it is tried first.
    last: Arc<AtomicUsize>,
    connect_timeout: Duration,
    lock_wait: u64,
}

/// One server of the URL.
#[derive(Debug)]
struct Host {
    opts: Opts,
    /// The same without encryption, where it is only preferred.
    plain: Option<Opts>,
    /// Whether the server was found to have no encryption, where it is only preferred.
    is_plain: AtomicBool,
}

impl Connector {
    /// Creates a connector with these settings.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when they cannot be used.
    pub fn new(config: &MysqlConfig) -> Result<Self> {
        if config.connect_timeout.is_zero() || config.statement_timeout.is_zero() {
            return Err(Error::new(ErrorKind::Invalid, SET_UP)
                .because("connect_timeout or statement_timeout is zero")
                .next_step("set both to more than zero"));
        }
        let (url, params) = url::split(SET_UP, &config.url)?;
        // A lock is waited for much shorter than the call may take, on every kind of connection, so that the server says so
        // before we hang up: MySQL looks at its clock once a second only.
        let lock_wait = (config.statement_timeout / 2).as_secs().clamp(1, 4);
        let hosts = url::one_by_one(&url);
        let hosts = hosts.iter().map(|url| Host::new(url, &params, lock_wait));
        Ok(Self {
            hosts: hosts.collect::<Result<_>>()?,
            last: Arc::default(),
            connect_timeout: config.connect_timeout,
            lock_wait,
        })
    }

    /// For how long its connections wait for a lock, in seconds.
    pub(crate) fn lock_wait(&self) -> u64 {
        self.lock_wait
    }

    /// A connection to the first host that answers, or of several hosts to the first that takes writes.
    pub(crate) async fn connect(&self) -> Result<Conn> {
        let (count, first) = (self.hosts.len(), self.last.load(Ordering::Relaxed));
        let mut failed = None;
        for at in (0..count).map(|n| (first + n) % count) {
            let host = &self.hosts[at];
            let what = format!("cannot connect to the database {}", host.address());
            match timeout(self.connect_timeout, host.dial(count > 1)).await {
                Ok(Ok(Some(connected))) => {
                    self.last.store(at, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Ok(None)) => failed = failed.or_else(|| Some(read_only(&what))),
                Ok(Err(error)) => failed = Some(from_driver(&what, error)),
                Err(_) => failed = Some(timed_out(&what, self.connect_timeout).next_step(CONNECT_SLOW)),
            }
        }
        Err(failed.unwrap_or_else(|| bad_url("cannot connect to the database")))
    }
}

impl Host {
    fn new(url: &str, params: &TlsParams, lock_wait: u64) -> Result<Self> {
        let opts = Opts::from_url(url).map_err(|_| bad_url(SET_UP))?;
        let (mode, encryption) = (tls::mode(params, &opts), tls::options(params, &opts)?);
        if encryption.is_some() {
            // The driver builds its own TLS settings, out of the provider of the process.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let builder = OptsBuilder::from_opts(opts)
            .prefer_socket(false)
            .tcp_keepalive(Some(Duration::from_secs(30)))
            .client_found_rows(true)
            .stmt_cache_size(Some(128))
            .setup(vec![
                SESSION.to_owned(),
                format!(
                    "SET SESSION autocommit = 1, time_zone = '+00:00', innodb_lock_wait_timeout = {lock_wait}, \
                     sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION' {FRESH_NUMBERS}"
                ),
                "SET NAMES utf8mb4 COLLATE utf8mb4_bin".to_owned(),
            ]);
        Ok(Self {
            plain: (mode == Mode::Prefer).then(|| builder.clone().into()),
            is_plain: AtomicBool::default(),
            opts: builder.ssl_opts(encryption).into(),
        })
    }

    /// `host:port/database`, for errors. Without user and password.
    fn address(&self) -> String {
        let opts = &self.opts;
        let database = opts.db_name().unwrap_or_default();
        format!("{}:{}/{database}", opts.ip_or_hostname(), opts.tcp_port())
    }

    /// A connection; `None` to a server that takes no writes, where one is asked for that does.
    async fn dial(&self, writable: bool) -> Result<Option<Conn>, MysqlError> {
        let mut conn = self.connect().await?;
        let is_read_only = writable && conn.query_first::<bool, _>(IS_READ_ONLY).await? == Some(true);
        Ok((!is_read_only).then_some(conn))
    }

    async fn connect(&self) -> Result<Conn, MysqlError> {
        let Some(plain) = &self.plain else {
            return Conn::new(self.opts.clone()).await;
        };
        if !self.is_plain.load(Ordering::Relaxed) {
            match Conn::new(self.opts.clone()).await {
                // It says so before anything was sent.
                Err(MysqlError::Driver(DriverError::NoClientSslFlagFromServer)) => {
                    self.is_plain.store(true, Ordering::Relaxed);
                }
                connected => return connected,
            }
        }
        Conn::new(plain.clone()).await
    }
}

fn read_only(what: &str) -> Error {
    Error::new(ErrorKind::Unreachable, what)
        .because("all hosts in the URL that answered are read-only")
        .next_step("wait until a failover completes, or add the primary to the URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_cannot_be_read_is_not_repeated() {
        for url in ["postgres://a:hunter2@b/c", "mysql://a:hunter2@b:port/c", "hunter2"] {
            let error = Connector::new(&MysqlConfig::new(url)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
        for url in ["mariadb://a@b/c", "mysql://a:x@b:1,c:2/d?sslmode=disable"] {
            assert!(Connector::new(&MysqlConfig::new(url)).is_ok());
        }
    }
}
