//! One request to the server: the rows of some lanes that are ready or due, in one round trip.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use sendoff::store::{Lane, ReadRequest, Row};
use sendoff::{Error, Result};
use tokio_postgres::types::Type;

use crate::decode::{ReadColumns, named, number, smallints};
use crate::error::odd_answer;
use crate::lanes::{Lanes, Plan};
use crate::pipeline::Statement;
use crate::pool::PooledConnection;
use crate::read::WHAT;
use crate::store::Inner;
use crate::straggler::{Sighting, Snapshot};
use crate::stretch::PAGE_BY_PAGE;

/// What the pool's settings are for readers that go lane by lane, after a stretch.
const ROW_BY_ROW: &str = "SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true), \
    set_config('enable_indexscan', 'on', true)";

pub(crate) struct Question<'a> {
    pub(crate) store: &'a Inner,
    pub(crate) lanes: &'a Lanes,
    /// How many rows of the waiting table are in flight.
    pub(crate) waiting: usize,
    pub(crate) request: &'a ReadRequest,
    pub(crate) plan: &'a Plan,
    /// Whether to take a transaction id.
    pub(crate) mark: bool,
}

/// One answer of the server.
pub(crate) struct Answer {
    pub(crate) sighting: Option<Sighting>,
    pub(crate) ready: Vec<(Lane, i64, Row)>,
    pub(crate) due: Vec<tokio_postgres::Row>,
}

/// What a statement of the question is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Its first row is about the statement itself.
    Ready,
    /// Lanes that are not in the stretch. It may see more than the first statement does, which does no harm: see
    /// `straggler.rs`. What it says of itself is not used.
    Others,
    Due,
    Setting,
}

/// One row of an answer.
enum Arrived {
    Ready(Row),
    About(tokio_postgres::Row),
    Due(tokio_postgres::Row),
    Nothing,
    Odd(Error),
}

impl Question<'_> {
    /// One round trip. `None` when the rows have more than `room` bytes: then the connection is of no use any more.
    ///
    /// # Errors
    /// What the server said, or that its answer is not one to this question.
    pub(crate) async fn ask(&self, connection: &PooledConnection, table: usize) -> Result<Option<Answer>> {
        let lanes = smallints(&self.lanes.numbers());
        let due_limit = number(self.request.limit + self.waiting);
        let mut parts: Vec<(Part, Statement<'_>)> = Vec::with_capacity(5);
        if self.request.ready {
            self.add_ready(&mut parts);
        }
        if self.request.due {
            let params = vec![
                (&lanes as _, Type::INT2_ARRAY),
                (&self.request.skip_sinks as _, Type::TEXT_ARRAY),
                (&due_limit as _, Type::INT8),
            ];
            let sql = &self.store.texts.read_due;
            parts.push((Part::Due, Statement { sql, params }));
        }
        // The function brings its own settings, and so does a stretch.
        let plainly = !self.request.due && (self.lanes.caught_up() || self.plan.stretch.is_some());
        let (parts, statements): (Vec<Part>, Vec<Statement<'_>>) = parts.into_iter().unzip();
        let come = AtomicUsize::new(0);
        let columns: Vec<OnceLock<ReadColumns>> = parts.iter().map(|_| OnceLock::new()).collect();
        let take = |at: usize, row: tokio_postgres::Row| {
            let size = row.raw_size_bytes();
            let has_room = come.fetch_add(size, Ordering::Relaxed) < table;
            has_room.then(|| arrived(parts[at], &columns[at], row))
        };
        let Some(arrived) = connection.run_taking(WHAT, &statements, plainly, &take).await? else {
            return Ok(None);
        };
        answer(arrived, self.request.ready).map(Some)
    }

    fn add_ready<'q>(&'q self, parts: &mut Vec<(Part, Statement<'q>)>) {
        let texts = &self.store.texts;
        let setting = |sql| {
            let params = Vec::new();
            (Part::Setting, Statement { sql, params })
        };
        let Some(stretch) = &self.plan.stretch else {
            let sql = if self.lanes.caught_up() {
                &texts.read_head
            } else {
                &texts.read_ready
            };
            return parts.push((Part::Ready, self.lane_by_lane(sql, &self.mark)));
        };
        parts.push(setting(PAGE_BY_PAGE));
        let params = vec![
            (&stretch.lanes as _, Type::INT2_ARRAY),
            (&stretch.after as _, Type::INT8),
            (&stretch.upto as _, Type::INT8),
            (&self.mark as _, Type::BOOL),
            (&stretch.limit as _, Type::INT8),
        ];
        let sql = &texts.read_stretch;
        parts.push((Part::Ready, Statement { sql, params }));
        if !self.plan.lanes.is_empty() || self.request.due {
            parts.push(setting(ROW_BY_ROW));
        }
        if !self.plan.lanes.is_empty() {
            parts.push((Part::Others, self.lane_by_lane(&texts.read_ready, &false)));
        }
    }

    fn lane_by_lane<'q>(&'q self, sql: &'q str, mark: &'q bool) -> Statement<'q> {
        let params = vec![
            (&self.plan.lanes as _, Type::INT2_ARRAY),
            (&self.plan.starts as _, Type::INT8_ARRAY),
            (&self.plan.sizes as _, Type::INT8_ARRAY),
            (mark as _, Type::BOOL),
        ];
        Statement { sql, params }
    }
}

/// Ready rows become messages when they arrive; which of them are new is seen when all are there.
fn arrived(part: Part, columns: &OnceLock<ReadColumns>, row: tokio_postgres::Row) -> Arrived {
    match part {
        Part::Setting => return Arrived::Nothing,
        Part::Due => return Arrived::Due(row),
        Part::Ready | Part::Others => {}
    }
    let ready = || -> Result<Option<Row>> {
        let columns = ReadColumns::once(columns, &row)?;
        match columns.lane(&row)? {
            Some(_) => columns.row(&row).map(Some),
            None => Ok(None),
        }
    };
    match ready() {
        Ok(Some(ready)) => Arrived::Ready(ready),
        Ok(None) if part == Part::Others => Arrived::Nothing,
        Ok(None) => Arrived::About(row),
        Err(error) => Arrived::Odd(error),
    }
}

fn answer(arrived: Vec<Vec<Arrived>>, ready: bool) -> Result<Answer> {
    let mut answer = Answer {
        sighting: None,
        ready: Vec::with_capacity(arrived.iter().map(Vec::len).max().unwrap_or(0)),
        due: Vec::new(),
    };
    for row in arrived.into_iter().flatten() {
        match row {
            Arrived::Ready(row) => answer.ready.push((row.row_ref().lane, row.row_ref().seq, row)),
            Arrived::About(row) => answer.sighting = Some(sighting(&row)?),
            Arrived::Due(row) => answer.due.push(row),
            Arrived::Nothing => {}
            Arrived::Odd(error) => return Err(error),
        }
    }
    if ready && answer.sighting.is_none() {
        return Err(odd_answer(WHAT, "the answer has no snapshot"));
    }
    Ok(answer)
}

/// What the first row says about the statement itself: the snapshot, the head of the sequence, a transaction id, and when the
/// server started.
pub(crate) fn sighting(about: &tokio_postgres::Row) -> Result<Sighting> {
    let text: &str = named(WHAT, about, "topic")?;
    Ok(Sighting {
        snapshot: Snapshot::parse(text).ok_or_else(|| odd_answer(WHAT, "the snapshot cannot be read"))?,
        head: named(WHAT, about, "seq")?,
        xid: named::<Option<i64>>(WHAT, about, "xid")?.map(i64::unsigned_abs),
        started: named(WHAT, about, "created_at")?,
    })
}
