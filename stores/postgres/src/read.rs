//! Read: one reader for each relay. `straggler.rs` explains why it misses no row.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::store::{InFlight, Lane, LaneGrant, Page, ReadRequest, Reader, Row};
use sendoff::{ErrorKind, Result};
use tokio::time::Instant;

use crate::ask::{Answer, Question};
use crate::decode::ReadColumns;
use crate::lanes::{Found, NORMAL, OfLane, rank};
use crate::large::RowSize;
use crate::pool::PooledConnection;
use crate::progress::{Progress, Weighed};
use crate::store::Inner;

/// Reading goes along an index, in order, and stops early. The planner does not know how early, and might rather sort
/// the whole backlog; and it would compile a statement that it takes for expensive.
pub(crate) const SETTINGS: &str = "SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off";

pub(crate) const WHAT: &str = "messages could not be read";

pub(crate) struct PostgresReader {
    pub(crate) store: Arc<Inner>,
    session: Option<PooledConnection>,
    pub(crate) progress: Progress,
    /// Rows of the waiting table in the relay's hands.
    pub(crate) waiting: InFlight,
    /// Large rows are looked at before they are read: see `large.rs`.
    pub(crate) row_size: RowSize,
}

/// What came of looking for rows.
enum Sought {
    Found(Answer),
    /// The database's history has changed.
    HistoryChanged,
    /// The rows are large. The connection is of no use any more.
    NoRoom,
}

impl PostgresReader {
    pub(crate) fn new(store: Arc<Inner>) -> Self {
        Self {
            store,
            session: None,
            progress: Progress::default(),
            waiting: InFlight::default(),
            row_size: RowSize::default(),
        }
    }

    /// A connection. A new one may lead to a server that has forgotten something: then all is read again.
    async fn connect(&mut self) -> Result<PooledConnection> {
        match self.session.take() {
            Some(connection) if !connection.is_closed() => Ok(connection),
            _ => {
                let connection = self.store.read_pool.get().await?;
                self.progress.restart();
                Ok(connection)
            }
        }
    }

    /// Asks until the rows can be handed out: mostly once.
    async fn find(&mut self, connection: &PooledConnection, request: &ReadRequest) -> Result<Sought> {
        let mut attempt = self.progress.begin(Instant::now());
        loop {
            let (plan, mark) = self.progress.plan(&attempt, request.limit);
            let question = Question {
                store: &self.store,
                lanes: &self.progress.lanes,
                waiting: self.waiting.len(),
                request,
                plan: &plan,
                mark,
            };
            // What is in flight may come again.
            let again = plan.again + if request.due { self.waiting.len() } else { 0 };
            let table = request.bytes.saturating_add(again * self.row_size.expected());
            let Some(found) = question.ask(connection, table).await? else {
                return Ok(Sought::NoRoom);
            };
            let in_stretch = || found.ready.iter().filter(|(lane, ..)| rank(*lane) == NORMAL).count();
            if plan
                .stretch
                .as_ref()
                .is_some_and(|stretch| stretch.overflows(in_stretch()))
            {
                self.progress.lanes.density = None;
                continue;
            }
            match &found.sighting {
                None => return Ok(Sought::Found(found)),
                Some(sighting) => match self.progress.weigh(&mut attempt, sighting) {
                    Weighed::Use => return Ok(Sought::Found(found)),
                    Weighed::AskAgain => {}
                    Weighed::HistoryChanged => return Ok(Sought::HistoryChanged),
                },
            }
        }
    }

    fn take(&mut self, found: Answer, request: &ReadRequest, page: &mut Page) -> Result<()> {
        self.take_due(&found.due, request.limit, page)?;
        if let Some(sighting) = found.sighting {
            self.take_ready(found.ready, sighting.head, request.limit, page);
        }
        Ok(())
    }

    fn take_ready(&mut self, mut rows: Vec<(Lane, i64, Row)>, head: i64, limit: usize, page: &mut Page) {
        // The plan keeps this order by itself; nobody promises that it does. A stretch comes page by page.
        if !rows.is_sorted_by_key(|(lane, seq, _)| (rank(*lane), *lane, *seq)) {
            rows.sort_unstable_by_key(|(lane, seq, _)| (rank(*lane), *seq));
        }
        let mut found = Found::new();
        page.rows.reserve(rows.len());
        for (lane, seq, row) in rows {
            found.entry(lane).or_insert(OfLane::first(seq)).add(seq);
            if self.progress.lanes.take(lane, seq, row.row_ref().id.uuid()) {
                page.rows.push(row);
            }
        }
        page.more |= self.progress.lanes.finish(&found, &BTreeMap::new(), limit, head);
    }

    fn take_due(&mut self, rows: &[tokio_postgres::Row], limit: usize, page: &mut Page) -> Result<()> {
        let mut taken = 0;
        let columns = rows.first().map(ReadColumns::of).transpose()?;
        for (row, columns) in rows.iter().zip(columns.iter().cycle()) {
            if taken < limit && self.waiting.take(&columns.row_ref(row)?) {
                page.rows.push(columns.row(row)?);
                taken += 1;
            }
        }
        page.more |= taken >= limit;
        Ok(())
    }
}

#[async_trait]
impl Reader for PostgresReader {
    fn gained(&mut self, grants: &[LaneGrant]) {
        self.progress.lanes.gained(grants);
        for grant in grants {
            self.waiting.drop_lane(grant.lane);
        }
    }

    fn lost(&mut self, lanes: &[Lane]) {
        self.progress.lanes.lost(lanes);
        for lane in lanes {
            self.waiting.drop_lane(*lane);
        }
    }

    async fn read(&mut self, request: ReadRequest) -> Result<Page> {
        self.progress.lanes.begin(&request);
        self.waiting.begin(&request);
        let mut page = Page::default();
        if self.progress.lanes.is_empty() || !(request.ready || request.due) || request.limit == 0 {
            return Ok(page);
        }
        let mut connection = self.connect().await?;
        let mut done = self.read_with(&connection, &request, &mut page).await;
        if let Ok(false) = done {
            drop(connection);
            connection = self.connect().await?;
            done = self.read_with(&connection, &request, &mut page).await;
        }
        match done {
            Ok(is_done) => {
                page.more |= !is_done;
                self.row_size.learn(&page.rows);
                self.session = Some(connection).filter(|_| is_done);
                Ok(page)
            }
            Err(error) => {
                // A row may be too large for the time of a statement, or to be sent at all.
                self.row_size.had_no_room();
                // The server answered and is the same as before. Starting over would make a read that took too long
                // take even longer.
                if error.kind() == ErrorKind::Busy {
                    self.session = Some(connection);
                }
                // Nothing is returned, so nothing of it is in anybody's hands. The next read connects and starts over.
                let forgotten = page.rows.iter().map(|row| row.row_ref().clone()).collect();
                let request = ReadRequest {
                    forgotten,
                    ..ReadRequest::default()
                };
                self.progress.lanes.begin(&request);
                self.waiting.begin(&request);
                Err(error)
            }
        }
    }
}

impl PostgresReader {
    /// Tells whether the page is read. If not, the rows are larger than was known, and the connection is of no use any more.
    async fn read_with(
        &mut self,
        connection: &PooledConnection,
        request: &ReadRequest,
        page: &mut Page,
    ) -> Result<bool> {
        let lanes = self.progress.lanes.numbers().len();
        if self.row_size.is_large_for(request, lanes) {
            return self.read_large(connection, request, page).await;
        }
        match self.find(connection, request).await? {
            Sought::Found(found) => self.take(found, request, page)?,
            Sought::HistoryChanged => page.history_changed = true,
            Sought::NoRoom => {
                self.row_size.had_no_room();
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Drop for PostgresReader {
    fn drop(&mut self) {
        if let Some(connection) = self.session.take() {
            connection.give_back();
        }
    }
}
