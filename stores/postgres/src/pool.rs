//! A few connections of one kind, so that one kind of work never waits for another.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::connect::{Connector, Session};
use crate::error::{from_driver, timed_out};

/// A parameter with the type it is sent as: statements are never prepared, so the server is told.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    connector: Connector,
    idle: Mutex<Vec<Session>>,
    permits: Arc<Semaphore>,
    limit: Duration,
}

impl Pool {
    /// At most `size` connections, on which one call may take as long as `limit`.
    pub(crate) fn new(connector: Connector, size: usize, limit: Duration) -> Self {
        Self(Arc::new(Inner {
            connector,
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(size)),
            limit,
        }))
    }

    /// A connection that works as far as one can know without asking the server.
    ///
    /// # Errors
    /// [`ErrorKind::Unreachable`]; [`ErrorKind::Busy`] when none came free in time.
    pub(crate) async fn lend(&self) -> Result<Lent> {
        let waiting = timeout(self.0.limit, Arc::clone(&self.0.permits).acquire_owned());
        let Ok(Ok(permit)) = waiting.await else {
            return Err(Error::new(ErrorKind::Busy, "no connection to the database came free")
                .because(format!("all of them were in use for {:?}", self.0.limit))
                .next_step("the call can be made again"));
        };
        let session = match self.take_idle() {
            Some(session) => session,
            None => self.0.connector.connect().await?,
        };
        Ok(Lent {
            session,
            pool: self.clone(),
            _permit: permit,
        })
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

/// A connection out of a [`Pool`]. It goes back only by [`Lent::give_back`], at the end of a call that went well;
/// dropped before that it is closed, and an open transaction with it.
#[derive(Debug)]
pub(crate) struct Lent {
    session: Session,
    pool: Pool,
    _permit: OwnedSemaphorePermit,
}

impl Lent {
    /// The driver's client, for statements that are sent together. Wrap what uses it in [`Lent::within`].
    pub(crate) fn client(&self) -> &Client {
        self.session.client()
    }

    /// Waits for an answer, but not for ever.
    pub(crate) async fn within<T>(
        &self,
        what: &str,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let limit = self.pool.0.limit;
        self.session.set_busy(true);
        match timeout(limit, answer).await {
            Ok(answer) => {
                self.session.set_busy(false);
                answer.map_err(|error| from_driver(what, error))
            }
            Err(_) => Err(timed_out(what, limit)),
        }
    }

    /// Runs one statement.
    pub(crate) async fn query(&self, what: &str, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.within(what, self.client().query_typed(sql, params)).await
    }

    /// Runs one statement that returns no rows, and tells how many it changed.
    pub(crate) async fn execute(&self, what: &str, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        self.within(what, self.client().execute_typed(sql, params)).await
    }

    /// Runs statements without parameters.
    pub(crate) async fn batch(&self, what: &str, sql: &str) -> Result<()> {
        self.within(what, self.client().batch_execute(sql)).await
    }

    /// Back into the pool. Only when no transaction is open.
    pub(crate) fn give_back(self) {
        let mut idle = self.pool.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(self.session);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.session.is_closed()
    }
}
