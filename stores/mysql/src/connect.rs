//! One connection to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql_async::{Conn, DriverError, Error as MysqlError, Opts, OptsBuilder};
use sendoff::{Error, ErrorKind, Result};
use sendoff_tls::Mode;
use tokio::time::timeout;

use crate::config::MysqlConfig;
use crate::error::{bad_url, from_driver, timed_out};
use crate::{tls, url};

/// What every session of ours starts with, whatever the server is set to. READ COMMITTED: no locks on the gaps between
/// rows, so emitting, settling and operators' actions do not meet where there is nothing.
const SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// How to connect. The only place that knows about transport.
#[derive(Debug, Clone)]
pub struct Connector {
    opts: Opts,
    /// The same without encryption, where it is only preferred.
    plain: Option<Opts>,
    /// Whether the server was found to have no encryption, where it is only preferred.
    is_plain: Arc<AtomicBool>,
    connect_timeout: Duration,
}

impl Connector {
    /// How to connect with these settings.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when they cannot be used.
    pub fn new(config: &MysqlConfig) -> Result<Self> {
        const WHAT: &str = "the MySQL store cannot be set up";
        if config.connect_timeout.is_zero() || config.statement_timeout.is_zero() {
            return Err(Error::new(ErrorKind::Invalid, WHAT)
                .because("a timeout is zero")
                .next_step("give connect_timeout and statement_timeout a length"));
        }
        let (url, params) = url::split(WHAT, &config.url)?;
        let opts = Opts::from_url(&url).map_err(|_| bad_url(WHAT))?;
        let (mode, encryption) = (tls::mode(&params, &opts), tls::options(&params, &opts)?);
        if encryption.is_some() {
            // The driver builds its own TLS settings, out of the provider of the process.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        // A lock is waited for much shorter than the call may take, on every kind of connection, so that the server says so
        // before we hang up: MySQL looks at its clock once a second only.
        let lock_wait = (config.statement_timeout / 2).as_secs().clamp(1, 4);
        let builder = OptsBuilder::from_opts(opts)
            .prefer_socket(false)
            .tcp_keepalive(Some(Duration::from_secs(30)))
            .client_found_rows(true)
            .stmt_cache_size(Some(128))
            .setup(vec![
                SESSION.to_owned(),
                format!(
                    "SET SESSION autocommit = 1, time_zone = '+00:00', innodb_lock_wait_timeout = {lock_wait}, \
                     sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
                ),
                "SET NAMES utf8mb4 COLLATE utf8mb4_bin".to_owned(),
            ]);
        Ok(Self {
            plain: (mode == Mode::Prefer).then(|| builder.clone().into()),
            is_plain: Arc::default(),
            opts: builder.ssl_opts(encryption).into(),
            connect_timeout: config.connect_timeout,
        })
    }

    pub(crate) async fn connect(&self) -> Result<Conn> {
        let what = "cannot connect to the database";
        match timeout(self.connect_timeout, self.dial()).await {
            Ok(connected) => connected.map_err(|error| from_driver(what, error)),
            Err(_) => Err(timed_out(what, self.connect_timeout)),
        }
    }

    async fn dial(&self) -> Result<Conn, MysqlError> {
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
        assert!(Connector::new(&MysqlConfig::new("mariadb://a@b/c")).is_ok());
    }
}
