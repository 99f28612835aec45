//! Read: returns the messages to deliver, from the ready table and the waiting table.

mod floors;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::Result;
use sendoff::store::{Lane, LaneGrant, Page, ReadRequest, Reader};
use tokio::time::Instant;

use self::state::State;
use crate::connect::Opened;
use crate::sql::Sql;
use crate::worker::Worker;

/// How often to look for rows that appeared below a floor, or under the number of another message. Only a person can put them
/// there (see [`floors`]), so it is not urgent, and the look costs a walk over the numbers of all ready rows.
const SWEEP: Duration = Duration::from_secs(5);

/// Reads the lanes of one relay.
pub(crate) struct SqliteReader {
    worker: Arc<Worker>,
    sql: Arc<Sql>,
    state: Arc<Mutex<State>>,
    swept: Option<Instant>,
}

impl SqliteReader {
    pub(crate) fn new(worker: Arc<Worker>, sql: Arc<Sql>) -> Self {
        Self {
            worker,
            sql,
            state: Arc::default(),
            swept: None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

#[async_trait]
impl Reader for SqliteReader {
    fn gained(&mut self, grants: &[LaneGrant]) {
        self.state().gain(grants.iter().map(|grant| grant.lane));
    }

    fn lost(&mut self, lanes: &[Lane]) {
        self.state().lose(lanes);
    }

    async fn read(&mut self, request: ReadRequest) -> Result<Page> {
        let now = Instant::now();
        let sweep = request.ready && self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP);
        let (sql, state) = (self.sql.clone(), self.state.clone());
        // The page waits in the state until it is fetched below: a caller that stops waiting in between gets it from
        // its next read, and no row is lost.
        let work = move |opened: &mut Opened| lock(&state).read(opened, &sql, &request, sweep);
        self.worker.call_opened("messages could not be read", work).await?;
        if sweep {
            self.swept = Some(now);
        }
        Ok(self.state().fetch())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
