//! A pool of connections. Each kind of work has its own pool, so that it never waits for another kind.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::Row;

use crate::connect::{Connector, Session};
use crate::error::{from_driver, timed_out};
use crate::pipeline::{Failed, Param, Statement, Take, in_order};

/// How much longer than the server we wait: an error is better than silence.
const GRACE: Duration = Duration::from_secs(1);

/// A pool of connections to one database.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    connector: Connector,
    idle: Mutex<Vec<Session>>,
    permits: Arc<Semaphore>,
    limit: Duration,
    begin: String,
    begin_plainly: String,
}

impl Pool {
    /// Creates a pool of at most `size` connections. One statement may take up to `limit`; transactions start with
    /// `settings`. `idle` is how long the server waits for the next statement of a transaction: a process that was
    /// stopped, or vanished silently, must not keep its locks.
    ///
    /// The server itself ends statements that take longer, whatever they wait for. The client never sends a cancel
    /// request: it needs a separate connection, which confuses some poolers, and its result is unknown.
    pub fn new(connector: Connector, size: usize, limit: Duration, idle: Option<Duration>, settings: &str) -> Self {
        let millis = |time: Duration| time.as_millis().min(i32::MAX.unsigned_abs().into());
        let idle = idle.map_or(String::new(), |idle| {
            format!("; SET LOCAL idle_in_transaction_session_timeout = {}", millis(idle))
        });
        let begin = format!("BEGIN; SET LOCAL statement_timeout = {}{idle}", millis(limit));
        Self(Arc::new(Inner {
            connector,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(size)),
            limit: limit + GRACE,
            begin: format!("{begin}; {settings}"),
            begin_plainly: begin,
        }))
    }

    /// A connection that is usable, as far as the client can tell without a request to the server.
    ///
    /// # Errors
    /// [`ErrorKind::Unreachable`]; [`ErrorKind::Busy`] when none came free in time.
    pub async fn get(&self) -> Result<PooledConnection> {
        let waiting = timeout(self.0.limit, Arc::clone(&self.0.permits).acquire_owned());
        let Ok(Ok(permit)) = waiting.await else {
            return Err(Error::new(ErrorKind::Busy, "no connection to the database is free")
                .because(format!(
                    "all connections of the pool were in use for {:?}",
                    self.0.limit
                ))
                .next_step("try again"));
        };
        let session = match self.take_idle() {
            Some(session) => session,
            None => self.0.connector.connect().await?,
        };
        Ok(PooledConnection {
            session,
            pool: self.clone(),
            _permit: permit,
        })
    }

    /// Runs one statement on a pooled connection.
    ///
    /// # Errors
    /// What the server said, in the words of [`sendoff::Error`].
    pub async fn run(&self, what: &str, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let connection = self.get().await?;
        let rows = connection.run(what, sql, params).await?;
        connection.give_back();
        Ok(rows)
    }

    fn take_idle(&self) -> Option<Session> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(session) = idle.pop() {
            if !session.is_closed() {
                return Some(session);
            }
        }
        None
    }
}

/// A connection from a [`Pool`]. It returns to the pool only by [`PooledConnection::give_back`], at the end of a
/// successful call. If it is dropped before that, it is closed, which ends an open transaction.
///
/// Every statement runs in a transaction, because only a transaction can have a time limit that does not affect the
/// session.
#[derive(Debug)]
pub struct PooledConnection {
    session: Session,
    pool: Pool,
    _permit: OwnedSemaphorePermit,
}

impl PooledConnection {
    /// Runs one statement as a transaction.
    pub(crate) async fn run(&self, what: &str, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let statement = Statement {
            sql,
            params: params.to_vec(),
        };
        let mut found = self.run_all(what, &[statement]).await?;
        Ok(found.pop().unwrap_or_default())
    }

    /// Runs statements as one transaction, in one round trip. Returns the rows of each statement.
    ///
    /// # Errors
    /// Of the first statement that failed; then none has had an effect.
    pub async fn run_all(&self, what: &str, statements: &[Statement<'_>]) -> Result<Vec<Vec<Row>>> {
        self.send(what, Some(&self.pool.0.begin), statements, Some("COMMIT"))
            .await
    }

    /// The same, with what is made of each row when it arrives. `plainly`: the statements need no settings of the pool's. `None`
    /// when there was no room: then the connection is of no use any more.
    pub(crate) async fn run_taking<T: Send>(
        &self,
        what: &str,
        statements: &[Statement<'_>],
        plainly: bool,
        take: Take<'_, T>,
    ) -> Result<Option<Vec<Vec<T>>>> {
        let begin = if plainly {
            &self.pool.0.begin_plainly
        } else {
            &self.pool.0.begin
        };
        self.send_taking(what, Some(begin), statements, Some("COMMIT"), take)
            .await
    }

    /// Begins a transaction with these statements.
    pub(crate) async fn begin(&self, what: &str, statements: &[Statement<'_>]) -> Result<Vec<Vec<Row>>> {
        self.send(what, Some(&self.pool.0.begin), statements, None).await
    }

    /// Goes on in the transaction.
    pub(crate) async fn run_next(&self, what: &str, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let statement = Statement {
            sql,
            params: params.to_vec(),
        };
        let mut found = self.send(what, None, &[statement], None).await?;
        Ok(found.pop().unwrap_or_default())
    }

    /// Runs a script without parameters in the transaction.
    pub(crate) async fn script(&self, what: &str, sql: &str) -> Result<()> {
        self.send(what, Some(sql), &[], None).await?;
        Ok(())
    }

    /// Ends the transaction with these statements.
    pub(crate) async fn commit(&self, what: &str, statements: &[Statement<'_>]) -> Result<Vec<Vec<Row>>> {
        self.send(what, None, statements, Some("COMMIT")).await
    }

    async fn send(
        &self,
        what: &str,
        first: Option<&str>,
        statements: &[Statement<'_>],
        last: Option<&str>,
    ) -> Result<Vec<Vec<Row>>> {
        let found = self
            .send_taking(what, first, statements, last, &|_, row| Some(row))
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn send_taking<T: Send>(
        &self,
        what: &str,
        first: Option<&str>,
        statements: &[Statement<'_>],
        last: Option<&str>,
        take: Take<'_, T>,
    ) -> Result<Option<Vec<Vec<T>>>> {
        let limit = self.pool.0.limit;
        self.session.set_busy(true);
        match timeout(limit, in_order(self.session.client(), first, statements, last, take)).await {
            Ok(Ok(found)) => {
                self.session.set_busy(false);
                Ok(Some(found))
            }
            Ok(Err(Failed::Driver(error))) => {
                self.session.set_busy(false);
                Err(from_driver(what, error))
            }
            Ok(Err(Failed::NoRoom)) => Ok(None),
            Err(_) => Err(timed_out(what, limit)),
        }
    }

    /// Returns the connection to the pool. Call it only when no transaction is open.
    pub fn give_back(self) {
        let mut idle = self.pool.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(self.session);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.session.is_closed()
    }
}
