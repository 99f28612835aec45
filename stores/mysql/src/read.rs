//! Read: one reader for each relay.
//!
//! The database assigns `seq` when a message is inserted, but the message is visible only after its transaction
//! commits. MySQL does not show which transactions are open, so a reader that continues from the highest `seq` it has
//! read could miss a lower one that commits later. So every read starts at the first row of a lane, in one snapshot,
//! and skips the rows that the relay has in flight; it fetches only the contents of new rows. Settled rows are deleted,
//! so a lane only contains rows in flight and rows that were not read yet.
//!
//! Order: a transaction that began after another one committed has the higher `seq`, and a snapshot that sees its row
//! also sees the other transaction's row. So the same read finds both, the lower `seq` first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::store::{Budget, Lane, LaneGrant, Page, ReadRequest, Reader, Row, RowRef, Table};
use sendoff::{ErrorKind, Result};
use serde_json::{Value, json};

use crate::decode::{ReadColumns, hex, id_hex, lane, list, number, row_id, text, unhex};
use crate::lanes::{Lanes, Locator};
use crate::pool::PooledConnection;
use crate::store::{FIRST_SIDE_LANE, Inner, SIDE_LANES};

const WHAT: &str = "messages could not be read";

pub(crate) struct MysqlReader {
    store: Arc<Inner>,
    session: Option<PooledConnection>,
    lanes: Lanes,
    /// Rows of the waiting table in the relay's hands.
    waiting: HashSet<RowRef>,
    /// How many bytes a row has, about.
    row_bytes: usize,
}

/// What one read found, before any of it is in flight.
#[derive(Default)]
struct Found {
    rows: Vec<Row>,
    more: bool,
    /// Whether the rows are large and more were asked for than may come: some are still on their way.
    is_cut: bool,
}

impl Found {
    fn nothing(more: bool) -> Self {
        Self {
            more,
            ..Self::default()
        }
    }
}

impl MysqlReader {
    pub(crate) fn new(store: Arc<Inner>) -> Self {
        Self {
            store,
            session: None,
            lanes: Lanes::default(),
            waiting: HashSet::new(),
            row_bytes: 0,
        }
    }

    async fn find(&mut self, connection: &mut PooledConnection, request: &ReadRequest) -> Result<(Found, Found)> {
        let mut found = (Found::default(), Found::default());
        let mut budget = Budget::new(request.bytes);
        if request.due {
            // Not all of it, so that what waited does not keep new messages waiting.
            let mut share = Budget::new(request.bytes.div_ceil(if request.ready { 2 } else { 1 }));
            found.0 = self.find_due(connection, request, &mut share).await?;
            budget.spend(found.0.rows.iter().map(Row::bytes).sum());
        }
        if found.0.is_cut || budget.is_spent() {
            found.0.more = true;
        } else if request.ready {
            found.1 = self.find_ready(connection, request.limit, &mut budget).await?;
        }
        Ok(found)
    }

    async fn find_ready(
        &mut self,
        connection: &mut PooledConnection,
        limit: usize,
        budget: &mut Budget,
    ) -> Result<Found> {
        let (locators, more) = self.look(connection, limit).await?;
        if locators.iter().any(|(lane, ..)| *lane >= FIRST_SIDE_LANE) {
            self.store.file().await;
        }
        let fresh = self.lanes.fresh(&locators);
        if fresh.is_empty() {
            return Ok(Found::nothing(more));
        }
        let row_refs: Vec<Value> = fresh.iter().map(|(lane, seq)| json!([lane, seq])).collect();
        let sql = self.store.texts.read_ready.at(2).to_owned();
        let (found, asked, is_cut) = self.contents(connection, Table::Ready, &sql, &row_refs, budget).await?;
        let mut contents: HashMap<(Lane, i64), Row> = HashMap::with_capacity(found.len());
        contents.extend(
            found
                .into_iter()
                .map(|row| ((row.row_ref().lane, row.row_ref().seq), row)),
        );
        let mut rows = Vec::with_capacity(contents.len());
        // Behind a row that did not come, the rest of its lane has to wait.
        let mut cut_lanes = HashSet::new();
        for locator in &fresh[..asked] {
            match contents.remove(locator) {
                Some(row) if !cut_lanes.contains(&locator.0) => rows.push(row),
                None if is_cut => {
                    cut_lanes.insert(locator.0);
                }
                Some(_) | None => {}
            }
        }
        Ok(Found {
            rows,
            more: more || asked < fresh.len() || is_cut,
            is_cut,
        })
    }

    /// Fetches the contents of rows, some at a time, until the budget is spent: what came, of how many, and whether the last
    /// answer was cut off. No more are asked for than fit, by what rows had so far; they may still be larger.
    async fn contents(
        &mut self,
        connection: &mut PooledConnection,
        table: Table,
        sql: &str,
        row_refs: &[Value],
        budget: &mut Budget,
    ) -> Result<(Vec<Row>, usize, bool)> {
        let (mut rows, mut asked) = (Vec::with_capacity(row_refs.len()), 0);
        let mut columns = None;
        while asked < row_refs.len() && !budget.is_spent() {
            let fits = (budget.left() / self.row_bytes.max(1)).max(1);
            let some = &row_refs[asked..row_refs.len().min(asked.saturating_add(fits))];
            asked += some.len();
            let sql = sql.replace("{rows}", &Value::from(some).to_string());
            let (mut came, mut bytes, mut odd) = (0, 0, None);
            let is_whole = connection
                .text_while(WHAT, &sql, |row| {
                    let size = size(&row);
                    budget.spend(size);
                    (came, bytes) = (came + 1, bytes + size);
                    match message(&mut columns, table, &row) {
                        Ok(row) => rows.push(row),
                        Err(error) => odd = odd.take().or(Some(error)),
                    }
                    came == some.len() || !budget.is_spent()
                })
                .await?;
            if let Some(error) = odd {
                return Err(error);
            }
            let average = bytes / came.max(1);
            self.row_bytes = average.max((self.row_bytes * 3 + average) / 4);
            if !is_whole {
                return Ok((rows, asked, true));
            }
        }
        Ok((rows, asked, false))
    }

    /// Where ready rows are: all of them if they are few, else some of each lane. One statement, so one snapshot.
    async fn look(&mut self, connection: &mut PooledConnection, limit: usize) -> Result<(Vec<Locator>, bool)> {
        let sql = &self.store.texts.read_ready;
        let mut numbers = self.lanes.numbers();
        numbers.extend(SIDE_LANES);
        let most = limit + self.lanes.in_flight() + 1;
        let all = sql.at(0).replace("{lanes}", &list(&numbers));
        let locators = locators(
            &connection
                .text(WHAT, &all.replace("{limit}", &most.to_string()))
                .await?,
        )?;
        if locators.len() < most {
            self.lanes.resize(&[], &[], limit);
            return Ok((locators, false));
        }
        let asked = self.lanes.shares(limit);
        let side = SIDE_LANES.map(|lane| (lane, 1));
        let parts = asked.iter().chain(&side).map(|(lane, size)| {
            let part = sql.at(1).replace("{lane}", &lane.to_string());
            part.replace("{limit}", &size.to_string())
        });
        let some = parts.collect::<Vec<_>>().join("\nUNION ALL\n");
        let locators = self::locators(&connection.text(WHAT, &some).await?)?;
        let more = self.lanes.resize(&asked, &locators, limit);
        Ok((locators, more))
    }

    async fn find_due(
        &mut self,
        connection: &mut PooledConnection,
        request: &ReadRequest,
        budget: &mut Budget,
    ) -> Result<Found> {
        let store = Arc::clone(&self.store);
        let sql = &store.texts.read_due;
        let skipped = request.skip_sinks.iter().map(|sink| format!("'{}'", hex(sink)));
        // No delivery is written like this one, and a list must not be empty.
        let skipped = skipped.chain(["'-'".to_owned()]).collect::<Vec<_>>().join(", ");
        let where_due = sql
            .at(0)
            .replace("{lanes}", &list(&self.lanes.numbers()))
            .replace("{deliveries}", &skipped)
            .replace("{limit}", &(request.limit + self.waiting.len()).to_string());
        let mut fresh = Vec::new();
        for row in &connection.text(WHAT, &where_due).await? {
            let sink = text(WHAT, row, 2)?;
            let row_ref = RowRef {
                table: Table::Waiting,
                lane: lane(WHAT, row, 0)?,
                seq: number(WHAT, row, 1)?,
                id: row_id(WHAT, row, 3)?,
                sink: unhex(&sink).filter(|sink| !sink.is_empty()).map(Into::into),
                locator: 0,
            };
            if fresh.len() < request.limit && !self.waiting.contains(&row_ref) {
                fresh.push((row_ref, sink));
            }
        }
        let more = fresh.len() >= request.limit;
        if fresh.is_empty() {
            return Ok(Found::nothing(more));
        }
        let row_refs: Vec<Value> = fresh
            .iter()
            .map(|(row_ref, sink)| json!([row_ref.lane, row_ref.seq, sink, id_hex(&row_ref.id)]))
            .collect();
        let (found, asked, is_cut) = self
            .contents(connection, Table::Waiting, sql.at(1), &row_refs, budget)
            .await?;
        let mut contents: HashMap<RowRef, Row> = HashMap::with_capacity(found.len());
        contents.extend(found.into_iter().map(|row| (row.row_ref().clone(), row)));
        let found = fresh[..asked].iter().map(|(row_ref, _)| contents.remove(row_ref));
        // What follows one that did not come, comes with it the next time.
        let rows = found.take_while(|row| row.is_some() || !is_cut).flatten().collect();
        Ok(Found {
            rows,
            more: more || asked < fresh.len() || is_cut,
            is_cut,
        })
    }

    /// What is returned is in flight from now on.
    fn take(&mut self, (due, ready): (Found, Found)) -> Page {
        let mut page = Page {
            rows: Vec::with_capacity(due.rows.len() + ready.rows.len()),
            more: due.more || ready.more,
            // Every read begins at the beginning of its lanes: nothing that it remembers depends on the history.
            history_changed: false,
        };
        for row in due.rows {
            if self.waiting.insert(row.row_ref().clone()) {
                page.rows.push(row);
            }
        }
        for row in ready.rows {
            self.lanes.take(row.row_ref());
            page.rows.push(row);
        }
        page
    }
}

#[async_trait]
impl Reader for MysqlReader {
    fn gained(&mut self, grants: &[LaneGrant]) {
        self.lanes.gained(grants);
        self.waiting
            .retain(|row_ref| grants.iter().all(|grant| grant.lane != row_ref.lane));
    }

    fn lost(&mut self, lanes: &[Lane]) {
        self.lanes.lost(lanes);
        self.waiting.retain(|row_ref| !lanes.contains(&row_ref.lane));
    }

    async fn read(&mut self, request: ReadRequest) -> Result<Page> {
        self.lanes.begin(&request);
        for row_ref in request.settled.iter().chain(&request.forgotten) {
            self.waiting.remove(row_ref);
        }
        if self.lanes.is_empty() || !(request.ready || request.due) || request.limit == 0 {
            return Ok(Page::default());
        }
        let mut connection = match self.session.take() {
            Some(connection) => connection,
            None => self.store.read_pool.get().await?,
        };
        match self.find(&mut connection, &request).await {
            Ok(found) => {
                if found.0.is_cut || found.1.is_cut {
                    connection.close();
                } else {
                    self.session = Some(connection);
                }
                Ok(self.take(found))
            }
            Err(error) => {
                if error.kind() == ErrorKind::Busy {
                    self.session = Some(connection);
                }
                Err(error)
            }
        }
    }
}

impl Drop for MysqlReader {
    fn drop(&mut self) {
        if let Some(connection) = self.session.take() {
            connection.give_back();
        }
    }
}

/// A row of contents. Where the columns are is looked up in the first one.
fn message(columns: &mut Option<ReadColumns>, table: Table, row: &mysql_async::Row) -> Result<Row> {
    let columns = match columns {
        Some(columns) => columns,
        None => columns.insert(ReadColumns::of(row)?),
    };
    columns.row(table, row)
}

/// How many bytes a row has on its way.
fn size(row: &mysql_async::Row) -> usize {
    let bytes = |at| match row.as_ref(at) {
        Some(mysql_async::Value::Bytes(bytes)) => bytes.len(),
        Some(_) | None => 8,
    };
    (0..row.len()).map(bytes).sum()
}

fn locators(rows: &[mysql_async::Row]) -> Result<Vec<Locator>> {
    rows.iter()
        .map(|row| Ok((lane(WHAT, row, 0)?, number(WHAT, row, 1)?, row_id(WHAT, row, 2)?)))
        .collect()
}
