//! A pool of connections. Each kind of work has its own pool, so that it never waits for another kind.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row};
use sendoff::store::OwnerId;
use sendoff::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::connect::Connector;
use crate::error::{from_driver, has_no_names, timed_out};
use crate::guard::Guard;

/// A pool of connections to one database.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    connector: Connector,
    idle: Mutex<Vec<Conn>>,
    permits: Arc<Semaphore>,
    limit: Duration,
    guard: Option<Arc<Guard>>,
}

impl Pool {
    /// Creates a pool of at most `size` connections. One statement may take up to `limit`.
    pub fn new(connector: Connector, size: usize, limit: Duration) -> Self {
        Self::with(connector, size, limit, None)
    }

    /// The same, where the server ends transactions whose client is gone.
    pub(crate) fn guarded(connector: Connector, size: usize, limit: Duration, guard: Arc<Guard>) -> Self {
        Self::with(connector, size, limit, Some(guard))
    }

    fn with(connector: Connector, size: usize, limit: Duration, guard: Option<Arc<Guard>>) -> Self {
        Self(Arc::new(Inner {
            connector,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(size)),
            limit,
            guard,
        }))
    }

    /// A connection.
    ///
    /// # Errors
    /// [`ErrorKind::Unreachable`]; [`ErrorKind::Busy`] when none came free in time.
    pub(crate) async fn get(&self) -> Result<PooledConnection> {
        let waiting = timeout(self.0.limit, Arc::clone(&self.0.permits).acquire_owned());
        let Ok(Ok(permit)) = waiting.await else {
            return Err(Error::new(ErrorKind::Busy, "no connection to the database is free")
                .because(format!(
                    "all connections of the pool were in use for {:?}",
                    self.0.limit
                ))
                .next_step("try again"));
        };
        let idle = self.idle().pop();
        let fresh = idle.is_none();
        let conn = match idle {
            Some(conn) => conn,
            None => self.0.connector.connect().await?,
        };
        Ok(PooledConnection {
            conn,
            fresh,
            end: "",
            pool: self.clone(),
            _permit: permit,
        })
    }

    /// Begins a transaction on a pooled connection. If the server has closed that connection since its last use,
    /// another one is used.
    ///
    /// # Errors
    /// What the server said, in the words of [`sendoff::Error`].
    pub async fn begin(&self, what: &str) -> Result<PooledConnection> {
        self.begin_as(what, None).await
    }

    /// The same in the name of a relay, so that others can end it when that one's lease has run out.
    pub(crate) async fn begin_for(&self, what: &str, owner: OwnerId) -> Result<PooledConnection> {
        self.begin_as(what, Some(owner)).await
    }

    async fn begin_as(&self, what: &str, owner: Option<OwnerId>) -> Result<PooledConnection> {
        loop {
            let mut connection = self.get().await?;
            let begun = match &self.0.guard {
                Some(guard) => {
                    connection.end = guard.end();
                    connection.script(what, &guard.begin(owner)).await
                }
                None => connection.script(what, "START TRANSACTION").await,
            };
            let Err(error) = begun else {
                return Ok(connection);
            };
            // The connection is closed below, and what was begun on it is over.
            if has_no_names(&error)
                && let Some(guard) = self.0.guard.as_ref().filter(|guard| guard.has_names())
            {
                guard.give_up_names();
            } else if connection.fresh || error.kind() != ErrorKind::Unreachable {
                return Err(error);
            } else {
                self.forget_idle();
            }
        }
    }

    /// Runs one read-only statement on a pooled connection.
    ///
    /// # Errors
    /// What the server said, in the words of [`sendoff::Error`].
    pub async fn rows(&self, what: &str, sql: &str, params: impl Into<Params>) -> Result<Vec<Row>> {
        let params = params.into();
        loop {
            let mut connection = self.get().await?;
            match connection.rows(what, sql, params.clone()).await {
                Ok(rows) => {
                    connection.give_back();
                    return Ok(rows);
                }
                Err(error) if connection.fresh || error.kind() != ErrorKind::Unreachable => return Err(error),
                Err(_) => self.forget_idle(),
            }
        }
    }

    /// They are as old as one that turned out to be closed.
    fn forget_idle(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Conn>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection from a [`Pool`]. It returns to the pool only by [`PooledConnection::give_back`] and
/// [`PooledConnection::roll_back`]. If it is dropped before that, it is closed, which ends an open transaction.
#[derive(Debug)]
pub struct PooledConnection {
    conn: Conn,
    /// Whether it was connected for this call.
    fresh: bool,
    /// What else the end of its transaction takes.
    end: &'static str,
    pool: Pool,
    _permit: OwnedSemaphorePermit,
}

impl PooledConnection {
    /// Runs a prepared statement and returns its rows.
    ///
    /// # Errors
    /// What the server said, in the words of [`sendoff::Error`].
    pub async fn rows(&mut self, what: &str, sql: &str, params: impl Into<Params>) -> Result<Vec<Row>> {
        let limit = self.pool.0.limit;
        answer(what, limit, self.conn.exec(sql, params.into())).await
    }

    /// Runs a prepared statement and returns the number of rows that it changed.
    ///
    /// # Errors
    /// What the server said, in the words of [`sendoff::Error`].
    pub async fn change(&mut self, what: &str, sql: &str, params: impl Into<Params>) -> Result<u64> {
        let limit = self.pool.0.limit;
        answer(what, limit, self.conn.exec_drop(sql, params.into())).await?;
        Ok(self.conn.affected_rows())
    }

    /// Runs a text into which only numbers and hexadecimal digits were inserted, and returns its rows.
    ///
    /// # Errors
    /// What the server said, in the words of [`sendoff::Error`].
    pub async fn text(&mut self, what: &str, sql: &str) -> Result<Vec<Row>> {
        let limit = self.pool.0.limit;
        answer(what, limit, self.conn.query(sql)).await
    }

    /// The same, row by row as they come, until `take` has enough. Tells whether it took all: if not, the rest is still on its
    /// way, and the connection is good for nothing but [`PooledConnection::close`].
    pub(crate) async fn text_while(
        &mut self,
        what: &str,
        sql: &str,
        mut take: impl FnMut(Row) -> bool,
    ) -> Result<bool> {
        let limit = self.pool.0.limit;
        let running = async {
            let mut rows = self.conn.query_iter(sql).await?;
            while let Some(row) = rows.next().await? {
                if !take(row) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        answer(what, limit, running).await
    }

    /// Closes the connection in the middle of an answer. The driver would read it to its end first, so the server is told to end
    /// it. Where a proxy is between, the number is not the server's, and the rest is read and dropped.
    pub(crate) fn close(self) {
        let Self {
            conn, pool, _permit, ..
        } = self;
        tokio::spawn(async move {
            if let Ok(mut other) = pool.0.connector.connect().await {
                let _ = other.query_drop(format!("KILL {}", conn.id())).await;
                let _ = other.disconnect().await;
            }
            drop((conn, _permit));
        });
    }

    /// Runs a script without parameters.
    pub(crate) async fn script(&mut self, what: &str, sql: &str) -> Result<()> {
        let limit = self.pool.0.limit;
        answer(what, limit, self.conn.query_drop(sql)).await
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// What the server said, in the words of [`sendoff::Error`].
    pub async fn commit(&mut self, what: &str) -> Result<()> {
        let end = format!("COMMIT{}", self.end);
        self.script(what, &end).await
    }

    /// Rolls the transaction back. If that fails, the connection is closed.
    pub async fn roll_back(mut self, what: &str) {
        let end = format!("ROLLBACK{}", self.end);
        if self.script(what, &end).await.is_ok() {
            self.give_back();
        }
    }

    /// Returns the connection to the pool. Call it only when no transaction is open.
    pub fn give_back(self) {
        let pool = self.pool.clone();
        pool.idle().push(self.conn);
    }
}

async fn answer<T>(
    what: &str,
    limit: Duration,
    running: impl Future<Output = Result<T, mysql_async::Error>>,
) -> Result<T> {
    match timeout(limit, running).await {
        Ok(answer) => answer.map_err(|error| from_driver(what, error)),
        Err(_) => Err(timed_out(what, limit)),
    }
}
