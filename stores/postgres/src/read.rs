//! Room: read. One reader a relay; what makes it safe is in `straggler.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::store::{InHand, Lane, LaneGrant, Page, Place, ReadRequest, Reader, Room, Row};
use sendoff::{Error, ErrorKind, Result};
use tokio::time::Instant;
use tokio_postgres::types::Type;

use crate::decode::{column, number, ready_row, smallints, waiting_row};
use crate::error::odd_answer;
use crate::lanes::{Plan, rank};
use crate::pipeline::Statement;
use crate::pool::Lent;
use crate::progress::{Progress, Weighed};
use crate::store::Inner;
use crate::straggler::{Sighting, Snapshot};

/// Reading goes along an index, in order, and stops early. The planner does not know how early, and might rather sort
/// the whole backlog; and it would compile a statement that it takes for expensive.
pub(crate) const SETTINGS: &str = "SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off";

/// The same question for a reader that has caught up: see the function.
const READ_HEAD: &str = "SELECT * FROM outbox_read_head($1, $2, $3, $4)";

const WHAT: &str = "messages could not be read";

pub(crate) struct PostgresReader {
    store: Arc<Inner>,
    session: Option<Lent>,
    read_head: String,
    progress: Progress,
    /// Rows of the waiting table in the relay's hands.
    waiting: InHand,
}

/// One answer of the server.
struct Found {
    sighting: Option<Sighting>,
    ready: Vec<(Lane, i64, Row)>,
    due: Vec<tokio_postgres::Row>,
}

/// One row of it.
enum Arrived {
    Ready(Lane, i64, Row),
    /// Of the waiting table, or about the statement itself.
    Other(tokio_postgres::Row),
    Odd(Error),
}

/// Ready rows become messages when they arrive; which of them are new is seen when all are there.
fn arrived(row: tokio_postgres::Row) -> Arrived {
    match (column::<Option<i16>>(WHAT, &row, 0), column::<i64>(WHAT, &row, 1)) {
        (Ok(None), _) => Arrived::Other(row),
        (Ok(Some(lane)), Ok(seq)) => {
            let lane = lane.unsigned_abs();
            Arrived::Ready(lane, seq, ready_row(&row, lane, seq))
        }
        (Err(error), _) | (_, Err(error)) => Arrived::Odd(error),
    }
}

impl PostgresReader {
    pub(crate) fn new(store: Arc<Inner>) -> Self {
        Self {
            read_head: store.config.names.render(READ_HEAD),
            store,
            session: None,
            progress: Progress::default(),
            waiting: InHand::default(),
        }
    }

    /// A connection. A new one may lead to a server that has forgotten something: then all is read again.
    async fn connect(&mut self) -> Result<Lent> {
        match self.session.take() {
            Some(lent) if !lent.is_closed() => Ok(lent),
            _ => {
                let lent = self.store.read_pool.lend().await?;
                self.progress.restart();
                Ok(lent)
            }
        }
    }

    /// Asks until the rows can be handed out: mostly once.
    async fn find(&mut self, lent: &Lent, request: &ReadRequest) -> Result<Found> {
        let mut attempt = self.progress.begin(Instant::now());
        loop {
            let (plan, mark) = self.progress.plan(&attempt, request.limit);
            let found = self.ask(lent, request, &plan, mark).await?;
            match &found.sighting {
                Some(sighting) if self.progress.weigh(&mut attempt, sighting) == Weighed::AskAgain => {}
                _ => return Ok(found),
            }
        }
    }

    /// One round trip.
    async fn ask(&self, lent: &Lent, request: &ReadRequest, plan: &Plan, mark: bool) -> Result<Found> {
        let lanes = smallints(&self.progress.lanes.numbers());
        let due_limit = number(request.limit + self.waiting.len());
        let mut statements = Vec::with_capacity(2);
        let caught_up = self.progress.lanes.caught_up();
        if request.ready {
            statements.push(Statement {
                sql: if caught_up {
                    &self.read_head
                } else {
                    &self.store.texts.read_ready
                },
                params: vec![
                    (&plan.lanes, Type::INT2_ARRAY),
                    (&plan.starts, Type::INT8_ARRAY),
                    (&plan.sizes, Type::INT8_ARRAY),
                    (&mark, Type::BOOL),
                ],
            });
        }
        if request.due {
            statements.push(Statement {
                sql: &self.store.texts.read_due,
                params: vec![
                    (&lanes, Type::INT2_ARRAY),
                    (&request.skip_legs, Type::TEXT_ARRAY),
                    (&due_limit, Type::INT8),
                ],
            });
        }
        let (ready_at, plainly) = (if request.ready { 0 } else { 1 }, caught_up && !request.due);
        let take = |at: usize, row| {
            if at == ready_at {
                arrived(row)
            } else {
                Arrived::Other(row)
            }
        };
        let answers = lent.run_taking(WHAT, &statements, plainly, &take).await?;
        let (mut ready, mut others) = (Vec::new(), Vec::new());
        if let Some(answer) = answers.first() {
            ready.reserve(answer.len());
        }
        for row in answers.into_iter().flatten() {
            match row {
                Arrived::Ready(lane, seq, row) => ready.push((lane, seq, row)),
                Arrived::Other(row) => others.push(row),
                Arrived::Odd(error) => return Err(error),
            }
        }
        let sighting = if request.ready {
            Some(sighting(&mut others)?)
        } else {
            None
        };
        Ok(Found {
            sighting,
            ready,
            due: others,
        })
    }

    fn take(&mut self, found: Found, request: &ReadRequest, page: &mut Page) -> Result<()> {
        self.take_due(&found.due, request.limit, page)?;
        if request.ready {
            self.take_ready(found.ready, request.limit, page);
        }
        Ok(())
    }

    fn take_ready(&mut self, mut rows: Vec<(Lane, i64, Row)>, limit: usize, page: &mut Page) {
        // The plan keeps this order by itself; nobody promises that it does.
        let key = |(lane, seq, _): &(Lane, i64, Row)| (rank(*lane), *lane, *seq);
        if !rows.is_sorted_by_key(key) {
            rows.sort_unstable_by_key(key);
        }
        let mut found: BTreeMap<Lane, (usize, i64)> = BTreeMap::new();
        for of_lane in rows.chunk_by(|one, other| one.0 == other.0) {
            if let Some((lane, last, _)) = of_lane.last() {
                found.insert(*lane, (of_lane.len(), *last));
            }
        }
        page.rows.reserve(rows.len());
        for (lane, seq, row) in rows {
            if self.progress.lanes.take(lane, seq) {
                page.rows.push(row);
            }
        }
        page.more |= self.progress.lanes.finish(&found, limit);
    }

    fn take_due(&mut self, rows: &[tokio_postgres::Row], limit: usize, page: &mut Page) -> Result<()> {
        let mut taken = 0;
        for row in rows {
            let (lane, seq) = (
                column::<i16>(WHAT, row, 0)?.unsigned_abs(),
                column::<i64>(WHAT, row, 1)?,
            );
            let leg = Some(column::<&str>(WHAT, row, 17)?).filter(|leg| !leg.is_empty());
            let place = Place {
                room: Room::Waiting,
                lane,
                seq,
                leg: leg.map(Into::into),
                spot: 0,
            };
            if taken < limit && self.waiting.take(&place) {
                page.rows.push(waiting_row(row, lane, seq, place.leg));
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
        let lent = self.connect().await?;
        let found = match self.find(&lent, &request).await {
            Ok(found) => found,
            Err(error) => {
                // The server answered and is the same as before. Starting over would make a read that took too long
                // take even longer.
                if error.kind() == ErrorKind::Busy {
                    self.session = Some(lent);
                }
                return Err(error);
            }
        };
        match self.take(found, &request, &mut page) {
            Ok(()) => {
                self.session = Some(lent);
                Ok(page)
            }
            Err(error) => {
                // Nothing is returned, so nothing of it is in anybody's hands. The next read connects and starts over.
                let forgotten = page.rows.iter().map(|row| row.place().clone()).collect();
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

impl Drop for PostgresReader {
    fn drop(&mut self) {
        if let Some(lent) = self.session.take() {
            lent.give_back();
        }
    }
}

/// The first row, which is about the statement itself.
fn sighting(rows: &mut Vec<tokio_postgres::Row>) -> Result<Sighting> {
    let about = rows
        .iter()
        .position(|row| matches!(row.try_get::<_, Option<i16>>(0), Ok(None)));
    let Some(about) = about else {
        return Err(odd_answer(WHAT, "the answer lacks its snapshot"));
    };
    let about = rows.remove(about);
    let text: &str = column(WHAT, &about, 3)?;
    Ok(Sighting {
        snapshot: Snapshot::parse(text).ok_or_else(|| odd_answer(WHAT, "the snapshot cannot be read"))?,
        head: column(WHAT, &about, 1)?,
        xid: column::<Option<i64>>(WHAT, &about, 17)?.map(i64::unsigned_abs),
        started: column(WHAT, &about, 14)?,
    })
}
