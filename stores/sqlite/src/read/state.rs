//! The state of a reader, and a read that uses it.

use std::time::SystemTime;

use rusqlite::{Connection, Statement, params};
use sendoff::store::{Budget, History, InFlight, Lane, Page, ReadRequest, Row, RowRef, Table};

use super::floors::{Class, Floors, Shares};
use crate::clock::to_time;
use crate::connect::Opened;
use crate::decode::{self, ReadColumns};
use crate::row_id::{self, Id};
use crate::sql::Sql;

/// How far was read, and what is in flight.
#[derive(Debug, Default)]
pub(super) struct State {
    floors: Floors,
    hand: InFlight,
    /// The history of the file at the last read.
    history: Option<History>,
    /// A page that was read and not fetched yet.
    page: Option<Page>,
    /// Where the columns of each statement are, once it has been prepared: ready rows by class, then rows that are due.
    columns: [Option<ReadColumns>; 4],
}

/// A page that is being filled.
struct Filling<'a> {
    page: &'a mut Page,
    budget: Budget,
    /// How many rows it may have by now.
    most: usize,
    /// How many bytes are left for what comes later.
    reserve: usize,
    /// The time by the database.
    now: SystemTime,
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

    fn push(&mut self, found: &rusqlite::Row<'_>, columns: &ReadColumns, row_ref: RowRef) {
        let row = columns.row(found, row_ref, self.now);
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
                self.forget(page.rows.iter().map(|row| row.row_ref().clone()).collect());
                Err(error)
            }
        }
    }

    /// Whether the file's history is not the one of the last read, continued.
    fn is_another_history(&mut self, history: History) -> bool {
        let before = self.history.replace(history.clone());
        before.is_some_and(|before| history.breaks_with(&before).is_some())
    }

    /// What is below a floor, or in flight, is of another history: all lanes are read from their beginning, once the relay
    /// knows of it.
    fn start_over(&mut self) {
        self.floors.start_over();
        self.hand = InFlight::default();
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
        let (head, now) = connection
            .prepare_cached(sql.read_ready.first())?
            .query_row([], |row| Ok((row.get(0)?, row.get(1).map(to_time)?)))?;
        let mut filling = Filling {
            page,
            budget: Budget::new(request.bytes),
            most: 0,
            reserve: 0,
            now,
        };
        if request.due {
            // Not all of a page, so that a sink that comes back does not keep new messages waiting.
            filling.leave(request.limit, if request.ready { 2 } else { usize::MAX });
            self.read_due(&mut filling, connection, sql, &request.skip_sinks)?;
        }
        if request.ready {
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
        let at = match class {
            Class::Normal => 1,
            Class::Urgent => 2,
            Class::Idle => 3,
        };
        let mut statement = connection.prepare_cached(sql.read_ready.at(at))?;
        let columns = self.columns(at - 1, &statement)?;
        for mut shares in [Shares::of(filling.most / 8), Shares::unlimited()] {
            while let Some(span) = self.floors.furthest_behind(class, head, &shares) {
                if filling.is_full() {
                    filling.page.more = true;
                    return Ok(());
                }
                let mut rows = statement.query(params![span.floor, span.ceiling, span.mask])?;
                let mut reached = span.ceiling;
                while let Some(row) = rows.next()? {
                    let row_ref = columns.ready_row_ref(row)?;
                    let (lane, seq) = (row_ref.lane, row_ref.seq);
                    if !self.hand.take(&row_ref) {
                        continue;
                    }
                    filling.push(row, &columns, row_ref);
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
        skip_sinks: &[String],
    ) -> rusqlite::Result<()> {
        let (low, high) = self.floors.masks();
        let skip_sinks = serde_json::Value::from(skip_sinks).to_string();
        let mut due = connection.prepare_cached(sql.read_due.at(0))?;
        let mut one = connection.prepare_cached(sql.read_due.at(1))?;
        let columns = self.columns(3, &one)?;
        let mut rows = due.query(params![low, high, skip_sinks])?;
        while let Some(row) = rows.next()? {
            if filling.is_full() {
                filling.page.more = true;
                break;
            }
            let Ok(sink) = row.get_ref(3)?.as_str() else {
                // No relay writes such a delivery, and a settlement could not name it.
                tracing::warn!(
                    event = "row_passed_over",
                    seq = row.get::<_, i64>(2)?,
                    "waiting row is skipped: its sink is not UTF-8"
                );
                continue;
            };
            let row_ref = RowRef {
                table: Table::Waiting,
                lane: row.get(1)?,
                seq: row.get(2)?,
                id: row_id::read(row.get_ref(4)?),
                sink: decode::sink(sink),
                locator: 0,
            };
            if !self.hand.take(&row_ref) {
                continue;
            }
            let mut found = one.query(params![row.get::<_, i64>(0)?, Id(&row_ref.id)])?;
            match found.next()? {
                Some(row) => filling.push(row, &columns, row_ref),
                // It went away between the two statements.
                None => self.forget(vec![row_ref]),
            }
        }
        Ok(())
    }

    /// Looked up by their names at the first read: its texts never change.
    fn columns(&mut self, index: usize, statement: &Statement<'_>) -> rusqlite::Result<ReadColumns> {
        if let Some(columns) = self.columns[index] {
            return Ok(columns);
        }
        let columns = ReadColumns::of(statement)?;
        self.columns[index] = Some(columns);
        Ok(columns)
    }

    /// Lowers floors to rows below them that are not in flight.
    fn sweep(&mut self, connection: &Connection, sql: &Sql) -> rusqlite::Result<()> {
        let mut missed = Vec::new();
        let mut statement = connection.prepare_cached(sql.read_ready.at(4))?;
        let mut rows = statement.query([self.floors.highest()])?;
        while let Some(row) = rows.next()? {
            let row_ref = decode::ready_row_ref(row, [0, 1, 2])?;
            let is_read = self.floors.of(row_ref.lane).is_some_and(|floor| row_ref.seq <= floor);
            if is_read && self.hand.take(&row_ref) {
                missed.push(row_ref);
            }
        }
        if !missed.is_empty() {
            tracing::debug!(
                event = "rows_late",
                rows = missed.len(),
                "rows with lower numbers than those already read appeared late"
            );
        }
        self.forget(missed);
        Ok(())
    }

    /// These rows were not read after all.
    fn forget(&mut self, row_refs: Vec<RowRef>) {
        self.lower(&row_refs);
        self.hand.begin(&ReadRequest {
            forgotten: row_refs,
            ..ReadRequest::default()
        });
    }

    fn lower(&mut self, row_refs: &[RowRef]) {
        for row_ref in row_refs.iter().filter(|row_ref| row_ref.table == Table::Ready) {
            self.floors.lower(row_ref.lane, row_ref.seq);
        }
    }

    fn forget_lane(&mut self, lane: Lane) {
        self.hand.drop_lane(lane);
        if let Some(page) = &mut self.page {
            page.rows.retain(|row: &Row| row.row_ref().lane != lane);
        }
    }
}
