//! Idle connections.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::connect::Connector;
use super::link::Link;
use crate::error::Failure;

pub(super) struct Pool {
    pub(super) connector: Connector,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<Link>,
    /// Connections that the broker blocks. They are kept, because the broker reports the end of the block only on them,
    /// and because it would not notice that they were closed.
    blocked: Vec<(Link, String)>,
    closed: bool,
}

/// A connection in use. It is closed unless it is given back: a batch that was dropped leaves confirms behind.
pub(super) struct Loan<'a> {
    pool: &'a Pool,
    link: Option<Link>,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            connector,
            state: Mutex::default(),
        }
    }

    /// An idle connection, or a new one.
    pub(super) async fn take(&self) -> Result<Loan<'_>, Failure> {
        let link = match self.at_hand()? {
            Some(link) => link,
            None => self.connector.link().await?,
        };
        Ok(Loan {
            pool: self,
            link: Some(link),
        })
    }

    fn at_hand(&self) -> Result<Option<Link>, Failure> {
        let mut state = self.state();
        if state.closed {
            return Err(Failure::closed());
        }
        if let Some((_, reason)) = state.blocked.iter().find(|(link, _)| link.is_blocked()) {
            return Err(Failure::blocked(reason));
        }
        // They still hold messages that were sent when they were blocked.
        for (link, _) in state.blocked.drain(..) {
            link.kill();
        }
        while let Some(link) = state.idle.pop() {
            if link.is_alive() {
                return Ok(Some(link));
            }
            link.kill();
        }
        Ok(None)
    }

    /// Closes all idle connections; those in use are closed when they are given back.
    pub(super) async fn close(&self) {
        let links: Vec<Link> = {
            let mut state = self.state();
            state.closed = true;
            let State { idle, blocked, .. } = &mut *state;
            idle.drain(..).chain(blocked.drain(..).map(|(link, _)| link)).collect()
        };
        futures::future::join_all(links.into_iter().map(Link::close)).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loan<'_> {
    /// Returns the connection; no message is left open on it.
    pub(super) fn give_back(mut self) {
        self.used = true;
        let mut state = self.pool.state();
        if !state.closed {
            state.idle.extend(self.link.take());
        }
    }

    /// Keeps the connection, which the broker blocks.
    pub(super) fn park(mut self, failure: &Failure) {
        let reason = failure.why().to_owned();
        let mut state = self.pool.state();
        if !state.closed {
            state.blocked.extend(self.link.take().map(|link| (link, reason)));
        }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            link.kill();
        }
    }
}

impl Deref for Loan<'_> {
    type Target = Link;

    #[allow(clippy::expect_used, reason = "only methods that consume the loan take it out")]
    fn deref(&self) -> &Link {
        self.link.as_ref().expect("a loan has a link")
    }
}

impl DerefMut for Loan<'_> {
    #[allow(clippy::expect_used, reason = "only methods that consume the loan take it out")]
    fn deref_mut(&mut self) -> &mut Link {
        self.link.as_mut().expect("a loan has a link")
    }
}
