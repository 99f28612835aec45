//! One question to the server: what is ready and due in some lanes, in one round trip.

use std::sync::atomic::{AtomicUsize, Ordering};

use sendoff::store::{Lane, ReadRequest, Row};
use sendoff::{Error, Result};
use tokio_postgres::types::Type;

use crate::decode::{column, number, ready_row, smallints};
use crate::error::odd_answer;
use crate::lanes::{Lanes, Plan};
use crate::pipeline::Statement;
use crate::pool::Lent;
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
    /// How many rows of the waiting table are in hand.
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
    Ready(Lane, i64, Row),
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
    pub(crate) async fn ask(&self, lent: &Lent, room: usize) -> Result<Option<Answer>> {
        let lanes = smallints(&self.lanes.numbers());
        let due_limit = number(self.request.limit + self.waiting);
        let mut parts: Vec<(Part, Statement<'_>)> = Vec::with_capacity(5);
        if self.request.ready {
            self.add_ready(&mut parts);
        }
        if self.request.due {
            let params = vec![
                (&lanes as _, Type::INT2_ARRAY),
                (&self.request.skip_legs as _, Type::TEXT_ARRAY),
                (&due_limit as _, Type::INT8),
            ];
            let sql = &self.store.texts.read_due;
            parts.push((Part::Due, Statement { sql, params }));
        }
        // The function brings its own settings, and so does a stretch.
        let plainly = !self.request.due && (self.lanes.caught_up() || self.plan.stretch.is_some());
        let (parts, statements): (Vec<Part>, Vec<Statement<'_>>) = parts.into_iter().unzip();
        let come = AtomicUsize::new(0);
        let take = |at: usize, row: tokio_postgres::Row| {
            let size = row.raw_size_bytes();
            let has_room = come.fetch_add(size, Ordering::Relaxed) < room;
            has_room.then(|| arrived(parts[at], row))
        };
        let Some(arrived) = lent.run_taking(WHAT, &statements, plainly, &take).await? else {
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
fn arrived(part: Part, row: tokio_postgres::Row) -> Arrived {
    match part {
        Part::Setting => return Arrived::Nothing,
        Part::Due => return Arrived::Due(row),
        Part::Ready | Part::Others => {}
    }
    match (column::<Option<i16>>(WHAT, &row, 0), column::<i64>(WHAT, &row, 1)) {
        (Ok(None), _) if part == Part::Others => Arrived::Nothing,
        (Ok(None), _) => Arrived::About(row),
        (Ok(Some(lane)), Ok(seq)) => {
            let lane = lane.unsigned_abs();
            Arrived::Ready(lane, seq, ready_row(&row, lane, seq))
        }
        (Err(error), _) | (_, Err(error)) => Arrived::Odd(error),
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
            Arrived::Ready(lane, seq, row) => answer.ready.push((lane, seq, row)),
            Arrived::About(row) => answer.sighting = Some(sighting(&row, [3, 1, 17, 14])?),
            Arrived::Due(row) => answer.due.push(row),
            Arrived::Nothing => {}
            Arrived::Odd(error) => return Err(error),
        }
    }
    if ready && answer.sighting.is_none() {
        return Err(odd_answer(WHAT, "the answer lacks its snapshot"));
    }
    Ok(answer)
}

/// What the first row says about the statement itself: in these columns the snapshot, the head of the sequence, a transaction
/// id, and when the server started.
pub(crate) fn sighting(about: &tokio_postgres::Row, [snapshot, head, xid, started]: [usize; 4]) -> Result<Sighting> {
    let text: &str = column(WHAT, about, snapshot)?;
    Ok(Sighting {
        snapshot: Snapshot::parse(text).ok_or_else(|| odd_answer(WHAT, "the snapshot cannot be read"))?,
        head: column(WHAT, about, head)?,
        xid: column::<Option<i64>>(WHAT, about, xid)?.map(i64::unsigned_abs),
        started: column(WHAT, about, started)?,
    })
}
