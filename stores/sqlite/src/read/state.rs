//! What a reader remembers, and a read with it.

use rusqlite::{Connection, params};
use sendoff::store::{Budget, History, InHand, Lane, Page, Place, ReadRequest, Room, Row};

use super::floors::{Class, Floors, Shares};
use crate::connect::Opened;
use crate::decode;
use crate::row_id::{self, Id};
use crate::sql::Sql;

/// How far was read, and what is in hand.
#[derive(Debug, Default)]
pub(super) struct State {
    floors: Floors,
    hand: InHand,
    /// The history of the file at the last read.
    history: Option<History>,
    /// A page that was read and not fetched yet.
    page: Option<Page>,
}

/// A page that is being filled.
struct Filling<'a> {
    page: &'a mut Page,
    budget: Budget,
    /// How many rows it may have by now.
    most: usize,
    /// How many bytes are left for what comes later.
    reserve: usize,
}

impl Filling<'_> {
    /// Leaves so small a part of it for what comes later.
    fn leave(&mut self, limit: usize, part: usize) {
        self.most = limit - limit / part;
        self.reserve = self.budget.left() / part;
    }

    fn is_full(&self) -> bool {
        self.page.rows.len() >= self.most || self.budget.left() <= self.reserve
    }

    fn push(&mut self, found: &rusqlite::Row<'_>, place: Place) {
        let row = decode::row(found, place);
        self.budget.spend(decode::size(found, &row));
        self.page.rows.push(row);
    }
}

impl State {
    /// Reads these lanes from their beginning.
    pub(super) fn gain(&mut self, lanes: impl Iterator<Item = Lane>) {
        for lane in lanes {
            self.forget_lane(lane);
            self.floors.gain(lane);
        }
    }

    /// Reads these lanes no more.
    pub(super) fn lose(&mut self, lanes: &[Lane]) {
        for lane in lanes {
            self.forget_lane(*lane);
            self.floors.lose(*lane);
        }
    }

    /// The page that was read.
    pub(super) fn fetch(&mut self) -> Page {
        self.page.take().unwrap_or_default()
    }

    /// Reads a page, to be fetched.
    pub(super) fn read(
        &mut self,
        opened: &Opened,
        sql: &Sql,
        request: &ReadRequest,
        sweep: bool,
    ) -> rusqlite::Result<()> {
        self.hand.begin(request);
        self.lower(&request.forgotten);
        if self.is_another_history(opened.history(sql)?) {
            self.start_over();
        }
        if self.page.is_some() {
            return Ok(());
        }
        let mut page = Page::default();
        match self.fill(&mut page, opened, sql, request, sweep) {
            Ok(()) => {
                self.page = Some(page);
                Ok(())
            }
            Err(error) => {
                // What was found before the error is not returned, so it has to be found again.
                self.forget(page.rows.iter().map(|row| row.place().clone()).collect());
                Err(error)
            }
        }
    }

    /// Whether the file's history is not the one of the last read, continued.
    fn is_another_history(&mut self, history: History) -> bool {
        let before = self.history.replace(history.clone());
        before.is_some_and(|before| history.breaks_with(&before).is_some())
    }

    /// What is below a floor, or in hand, is of another history: all lanes are read from their beginning, once the relay
    /// knows of it.
    fn start_over(&mut self) {
        self.floors.start_over();
        self.hand = InHand::default();
        self.page = Some(Page {
            history_changed: true,
            ..Page::default()
        });
    }

    fn fill(
        &mut self,
        page: &mut Page,
        connection: &Connection,
        sql: &Sql,
        request: &ReadRequest,
        sweep: bool,
    ) -> rusqlite::Result<()> {
        let mut filling = Filling {
            page,
            budget: Budget::new(request.bytes),
            most: 0,
            reserve: 0,
        };
        if request.due {
            // Not all of a page, so that a sink that comes back does not keep new messages waiting.
            filling.leave(request.limit, if request.ready { 2 } else { usize::MAX });
            self.read_due(&mut filling, connection, sql, &request.skip_legs)?;
        }
        if request.ready {
            let head = connection
                .prepare_cached(sql.read_ready.at(0))?
                .query_row([], |row| row.get(0))?;
            if sweep {
                self.sweep(connection, sql)?;
            }
            // Urgent ones first, idle ones last, and none of them kept waiting for ever by the others.
            for (class, rest) in [(Class::Urgent, 4), (Class::Normal, 16), (Class::Idle, usize::MAX)] {
                filling.leave(request.limit, rest);
                self.read_ready(&mut filling, connection, sql, class, head)?;
            }
        }
        Ok(())
    }

    /// Reads lanes of one class until the page is full: each lane its share first, then whatever comes.
    fn read_ready(
        &mut self,
        filling: &mut Filling<'_>,
        connection: &Connection,
        sql: &Sql,
        class: Class,
        head: i64,
    ) -> rusqlite::Result<()> {
        let text = match class {
            Class::Normal => sql.read_ready.at(1),
            Class::Urgent => sql.read_ready.at(2),
            Class::Idle => sql.read_ready.at(3),
        };
        let mut statement = connection.prepare_cached(text)?;
        for mut shares in [Shares::of(filling.most / 8), Shares::unlimited()] {
            while let Some(span) = self.floors.furthest_behind(class, head, &shares) {
                if filling.is_full() {
                    filling.page.more = true;
                    return Ok(());
                }
                let mut rows = statement.query(params![span.floor, span.ceiling, span.mask])?;
                let mut reached = span.ceiling;
                while let Some(row) = rows.next()? {
                    let place = decode::ready_place(row, decode::ID)?;
                    let (lane, seq) = (place.lane, place.seq);
                    if !self.hand.take(&place) {
                        continue;
                    }
                    filling.push(row, place);
                    if shares.take(lane) || filling.is_full() {
                        reached = seq;
                        break;
                    }
                }
                self.floors.reached(&span, reached);
            }
        }
        Ok(())
    }

    fn read_due(
        &mut self,
        filling: &mut Filling<'_>,
        connection: &Connection,
        sql: &Sql,
        skip_legs: &[String],
    ) -> rusqlite::Result<()> {
        let (low, high) = self.floors.masks();
        let skip_legs = serde_json::Value::from(skip_legs).to_string();
        let mut due = connection.prepare_cached(sql.read_due.at(0))?;
        let mut one = connection.prepare_cached(sql.read_due.at(1))?;
        let mut rows = due.query(params![low, high, skip_legs])?;
        while let Some(row) = rows.next()? {
            if filling.is_full() {
                filling.page.more = true;
                break;
            }
            let Ok(leg) = row.get_ref(3)?.as_str() else {
                // No relay writes such a leg, and a settlement could not name it.
                tracing::warn!(
                    event = "row_passed_over",
                    seq = row.get::<_, i64>(2)?,
                    "a waiting row is passed over: its leg is not UTF-8"
                );
                continue;
            };
            let place = Place {
                room: Room::Waiting,
                lane: row.get(1)?,
                seq: row.get(2)?,
                id: row_id::read(row.get_ref(4)?),
                leg: decode::leg(leg),
                spot: 0,
            };
            if !self.hand.take(&place) {
                continue;
            }
            let mut found = one.query(params![row.get::<_, i64>(0)?, Id(&place.id)])?;
            match found.next()? {
                Some(row) => filling.push(row, place),
                // It went away between the two statements.
                None => self.forget(vec![place]),
            }
        }
        Ok(())
    }

    /// Lowers floors to rows below them that are not in hand.
    fn sweep(&mut self, connection: &Connection, sql: &Sql) -> rusqlite::Result<()> {
        let mut missed = Vec::new();
        let mut statement = connection.prepare_cached(sql.read_ready.at(4))?;
        let mut rows = statement.query([self.floors.highest()])?;
        while let Some(row) = rows.next()? {
            let place = decode::ready_place(row, 2)?;
            let is_read = self.floors.of(place.lane).is_some_and(|floor| place.seq <= floor);
            if is_read && self.hand.take(&place) {
                missed.push(place);
            }
        }
        if !missed.is_empty() {
            tracing::debug!(
                event = "rows_late",
                rows = missed.len(),
                "rows appeared below numbers that were already read"
            );
        }
        self.forget(missed);
        Ok(())
    }

    /// These rows were not read after all.
    fn forget(&mut self, places: Vec<Place>) {
        self.lower(&places);
        self.hand.begin(&ReadRequest {
            forgotten: places,
            ..ReadRequest::default()
        });
    }

    fn lower(&mut self, places: &[Place]) {
        for place in places.iter().filter(|place| place.room == Room::Ready) {
            self.floors.lower(place.lane, place.seq);
        }
    }

    fn forget_lane(&mut self, lane: Lane) {
        self.hand.drop_lane(lane);
        if let Some(page) = &mut self.page {
            page.rows.retain(|row: &Row| row.place().lane != lane);
        }
    }
}
