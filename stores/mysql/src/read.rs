//! Room: read. One reader a relay.
//!
//! `seq` is handed out when a message is inserted and seen when its transaction commits. MySQL does not tell which
//! transactions are open, so a reader that went on from the highest `seq` it saw could pass over a lower one that commits
//! later. Every read therefore looks at a lane from its beginning, in one snapshot, and passes over what the relay has in
//! its hands; the contents are fetched only of what is new. Settled rows are deleted, so a lane is no longer than what is
//! in hand and what is behind it.
//!
//! Order: who began after somebody else's commit has a higher `seq`, and a snapshot that sees its row sees the other
//! one's, too. Both are then found by the same read, the lower `seq` first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use sendoff::store::{Budget, Lane, LaneGrant, Page, Place, ReadRequest, Reader, Room, Row};
use sendoff::{ErrorKind, Result};
use serde_json::{Value, json};

use crate::decode::{hex, id_hex, lane, list, message, number, row_id, text, unhex};
use crate::lanes::{Lanes, Spot};
use crate::pool::Lent;
use crate::store::{FIRST_SIDE_LANE, Inner, SIDE_LANES};

const WHAT: &str = "messages could not be read";

pub(crate) struct MysqlReader {
    store: Arc<Inner>,
    session: Option<Lent>,
    lanes: Lanes,
    /// Rows of the waiting table in the relay's hands.
    waiting: HashSet<Place>,
    /// How many bytes a row has, about.
    row_bytes: usize,
}

/// What one read found, before any of it is in hand.
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

    async fn find(&mut self, lent: &mut Lent, request: &ReadRequest) -> Result<(Found, Found)> {
        let mut found = (Found::default(), Found::default());
        let mut budget = Budget::new(request.bytes);
        if request.due {
            // Not all of it, so that what waited does not keep new messages waiting.
            let mut share = Budget::new(request.bytes.div_ceil(if request.ready { 2 } else { 1 }));
            found.0 = self.find_due(lent, request, &mut share).await?;
            budget.spend(found.0.rows.iter().map(Row::bytes).sum());
        }
        if found.0.is_cut || budget.is_spent() {
            found.0.more = true;
        } else if request.ready {
            found.1 = self.find_ready(lent, request.limit, &mut budget).await?;
        }
        Ok(found)
    }

    async fn find_ready(&mut self, lent: &mut Lent, limit: usize, budget: &mut Budget) -> Result<Found> {
        let (spots, more) = self.look(lent, limit).await?;
        if spots.iter().any(|(lane, ..)| *lane >= FIRST_SIDE_LANE) {
            self.store.file().await;
        }
        let fresh = self.lanes.fresh(&spots);
        if fresh.is_empty() {
            return Ok(Found::nothing(more));
        }
        let places: Vec<Value> = fresh.iter().map(|(lane, seq)| json!([lane, seq])).collect();
        let sql = self.store.texts.read_ready.at(2).to_owned();
        let (found, asked, is_cut) = self.contents(lent, Room::Ready, &sql, &places, budget).await?;
        let mut contents: HashMap<(Lane, i64), Row> = HashMap::with_capacity(found.len());
        contents.extend(found.into_iter().map(|row| ((row.place().lane, row.place().seq), row)));
        let mut rows = Vec::with_capacity(contents.len());
        // Behind a row that did not come, the rest of its lane has to wait.
        let mut cut_lanes = HashSet::new();
        for spot in &fresh[..asked] {
            match contents.remove(spot) {
                Some(row) if !cut_lanes.contains(&spot.0) => rows.push(row),
                None if is_cut => {
                    cut_lanes.insert(spot.0);
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
    /// answer was cut off. No more are asked for than fit, by what rows had so far; they may be larger all the same.
    async fn contents(
        &mut self,
        lent: &mut Lent,
        room: Room,
        sql: &str,
        places: &[Value],
        budget: &mut Budget,
    ) -> Result<(Vec<Row>, usize, bool)> {
        let (mut rows, mut asked) = (Vec::with_capacity(places.len()), 0);
        while asked < places.len() && !budget.is_spent() {
            let fits = (budget.left() / self.row_bytes.max(1)).max(1);
            let some = &places[asked..places.len().min(asked.saturating_add(fits))];
            asked += some.len();
            let sql = sql.replace("{rows}", &Value::from(some).to_string());
            let (mut came, mut bytes, mut odd) = (0, 0, None);
            let is_whole = lent
                .text_while(WHAT, &sql, |row| {
                    let size = size(&row);
                    budget.spend(size);
                    (came, bytes) = (came + 1, bytes + size);
                    match message(room, &row) {
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
    async fn look(&mut self, lent: &mut Lent, limit: usize) -> Result<(Vec<Spot>, bool)> {
        let sql = &self.store.texts.read_ready;
        let mut numbers = self.lanes.numbers();
        numbers.extend(SIDE_LANES);
        let most = limit + self.lanes.in_hand() + 1;
        let all = sql.at(0).replace("{lanes}", &list(&numbers));
        let spots = spots(&lent.text(WHAT, &all.replace("{limit}", &most.to_string())).await?)?;
        if spots.len() < most {
            self.lanes.resize(&[], &[], limit);
            return Ok((spots, false));
        }
        let asked = self.lanes.shares(limit);
        let side = SIDE_LANES.map(|lane| (lane, 1));
        let parts = asked.iter().chain(&side).map(|(lane, size)| {
            let part = sql.at(1).replace("{lane}", &lane.to_string());
            part.replace("{limit}", &size.to_string())
        });
        let some = parts.collect::<Vec<_>>().join("\nUNION ALL\n");
        let spots = self::spots(&lent.text(WHAT, &some).await?)?;
        let more = self.lanes.resize(&asked, &spots, limit);
        Ok((spots, more))
    }

    async fn find_due(&mut self, lent: &mut Lent, request: &ReadRequest, budget: &mut Budget) -> Result<Found> {
        let store = Arc::clone(&self.store);
        let sql = &store.texts.read_due;
        let skipped = request.skip_legs.iter().map(|leg| format!("'{}'", hex(leg)));
        // No leg is written like this one, and a list must not be empty.
        let skipped = skipped.chain(["'-'".to_owned()]).collect::<Vec<_>>().join(", ");
        let where_due = sql
            .at(0)
            .replace("{lanes}", &list(&self.lanes.numbers()))
            .replace("{legs}", &skipped)
            .replace("{limit}", &(request.limit + self.waiting.len()).to_string());
        let mut fresh = Vec::new();
        for row in &lent.text(WHAT, &where_due).await? {
            let leg = text(WHAT, row, 2)?;
            let place = Place {
                room: Room::Waiting,
                lane: lane(WHAT, row, 0)?,
                seq: number(WHAT, row, 1)?,
                id: row_id(WHAT, row, 3)?,
                leg: unhex(&leg).filter(|leg| !leg.is_empty()).map(Into::into),
                spot: 0,
            };
            if fresh.len() < request.limit && !self.waiting.contains(&place) {
                fresh.push((place, leg));
            }
        }
        let more = fresh.len() >= request.limit;
        if fresh.is_empty() {
            return Ok(Found::nothing(more));
        }
        let places: Vec<Value> = fresh
            .iter()
            .map(|(place, leg)| json!([place.lane, place.seq, leg, id_hex(&place.id)]))
            .collect();
        let (found, asked, is_cut) = self.contents(lent, Room::Waiting, sql.at(1), &places, budget).await?;
        let mut contents: HashMap<Place, Row> = HashMap::with_capacity(found.len());
        contents.extend(found.into_iter().map(|row| (row.place().clone(), row)));
        let found = fresh[..asked].iter().map(|(place, _)| contents.remove(place));
        // What follows one that did not come, comes with it the next time.
        let rows = found.take_while(|row| row.is_some() || !is_cut).flatten().collect();
        Ok(Found {
            rows,
            more: more || asked < fresh.len() || is_cut,
            is_cut,
        })
    }

    /// What is returned is in hand from now on.
    fn take(&mut self, (due, ready): (Found, Found)) -> Page {
        let mut page = Page {
            rows: Vec::with_capacity(due.rows.len() + ready.rows.len()),
            more: due.more || ready.more,
            // Every read begins at the beginning of its lanes: nothing that it remembers depends on the history.
            history_changed: false,
        };
        for row in due.rows {
            if self.waiting.insert(row.place().clone()) {
                page.rows.push(row);
            }
        }
        for row in ready.rows {
            self.lanes.take(row.place());
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
            .retain(|place| grants.iter().all(|grant| grant.lane != place.lane));
    }

    fn lost(&mut self, lanes: &[Lane]) {
        self.lanes.lost(lanes);
        self.waiting.retain(|place| !lanes.contains(&place.lane));
    }

    async fn read(&mut self, request: ReadRequest) -> Result<Page> {
        self.lanes.begin(&request);
        for place in request.settled.iter().chain(&request.forgotten) {
            self.waiting.remove(place);
        }
        if self.lanes.is_empty() || !(request.ready || request.due) || request.limit == 0 {
            return Ok(Page::default());
        }
        let mut lent = match self.session.take() {
            Some(lent) => lent,
            None => self.store.read_pool.lend().await?,
        };
        match self.find(&mut lent, &request).await {
            Ok(found) => {
                if found.0.is_cut || found.1.is_cut {
                    lent.hang_up();
                } else {
                    self.session = Some(lent);
                }
                Ok(self.take(found))
            }
            Err(error) => {
                if error.kind() == ErrorKind::Busy {
                    self.session = Some(lent);
                }
                Err(error)
            }
        }
    }
}

impl Drop for MysqlReader {
    fn drop(&mut self) {
        if let Some(lent) = self.session.take() {
            lent.give_back();
        }
    }
}

/// How many bytes a row has on its way.
fn size(row: &mysql_async::Row) -> usize {
    let bytes = |at| match row.as_ref(at) {
        Some(mysql_async::Value::Bytes(bytes)) => bytes.len(),
        Some(_) | None => 8,
    };
    (0..row.len()).map(bytes).sum()
}

fn spots(rows: &[mysql_async::Row]) -> Result<Vec<Spot>> {
    rows.iter()
        .map(|row| Ok((lane(WHAT, row, 0)?, number(WHAT, row, 1)?, row_id(WHAT, row, 2)?)))
        .collect()
}
