//! The lanes of one reader: how far each lane was read, how many rows to read of it, and its rows in flight.

use std::collections::BTreeMap;

use sendoff::Uuid;
use sendoff::store::{Lane, LaneGrant, ReadRequest, RowRef, Table};

use crate::decode::smallint;
use crate::stretch::{Density, Stretch};

/// Everything that is visible has been read.
pub(crate) const ALL: i64 = i64::MAX;

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    all: BTreeMap<Lane, State>,
    /// Known while lanes are read together.
    pub(crate) density: Option<Density>,
    /// What was asked for last.
    stretch: Option<Stretch>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// Every visible row up to this `seq` was returned: the last one of a page that came back full, the end of a stretch,
    /// else [`ALL`].
    pub(crate) cursor: i64,
    /// How many rows to ask for, on top of those in flight.
    size: usize,
    /// How many were asked for.
    asked: usize,
    /// What was returned and is still in the ready table: numbers, and whose they are.
    pub(crate) in_flight: BTreeMap<i64, Uuid>,
}

impl State {
    fn put_down(&mut self, row_ref: &RowRef) {
        if self.in_flight.get(&row_ref.seq) == Some(&row_ref.id.uuid()) {
            self.in_flight.remove(&row_ref.seq);
        }
    }
}

/// The rows of one lane in an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfLane {
    pub(crate) rows: usize,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl OfLane {
    pub(crate) fn first(seq: i64) -> Self {
        Self {
            rows: 0,
            first: seq,
            last: seq,
        }
    }

    pub(crate) fn add(&mut self, seq: i64) {
        self.rows += 1;
        self.last = seq;
    }
}

pub(crate) type Found = BTreeMap<Lane, OfLane>;

/// What to read: one entry a lane in each list, and lanes that are read together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) stretch: Option<Stretch>,
    pub(crate) lanes: Vec<i16>,
    pub(crate) starts: Vec<i64>,
    pub(crate) sizes: Vec<i64>,
    /// How many rows are in flight and will be found again.
    pub(crate) again: usize,
}

impl Lanes {
    /// Reads these from their beginning.
    pub(crate) fn gained(&mut self, grants: &[LaneGrant]) {
        for grant in grants {
            let fresh = State {
                cursor: 0,
                size: 1,
                asked: 0,
                in_flight: BTreeMap::new(),
            };
            self.all.insert(grant.lane, fresh);
        }
    }

    pub(crate) fn lost(&mut self, lanes: &[Lane]) {
        for lane in lanes {
            self.all.remove(lane);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them.
    pub(crate) fn numbers(&self) -> Vec<Lane> {
        self.all.keys().copied().collect()
    }

    /// Whether all that was visible has been read: what comes next are a few rows.
    pub(crate) fn caught_up(&self) -> bool {
        self.all.values().all(|state| state.cursor == ALL)
    }

    /// Takes note of what was settled and forgotten. A forgotten row is read again: the cursor goes back before it.
    pub(crate) fn begin(&mut self, request: &ReadRequest) {
        let ready = |row_ref: &&RowRef| row_ref.table == Table::Ready;
        for row_ref in request.settled.iter().filter(ready) {
            if let Some(state) = self.all.get_mut(&row_ref.lane) {
                state.put_down(row_ref);
            }
        }
        for row_ref in request.forgotten.iter().filter(ready) {
            if let Some(state) = self.all.get_mut(&row_ref.lane) {
                state.put_down(row_ref);
                state.cursor = state.cursor.min(row_ref.seq.saturating_sub(1));
            }
        }
    }

    /// Starts every lane at its beginning again.
    pub(crate) fn rewind(&mut self) {
        self.density = None;
        for state in self.all.values_mut() {
            state.cursor = 0;
        }
    }

    /// What to read from `floor` on: urgent lanes first, idle ones last. About `limit` rows, plus what is in flight and
    /// will be found again.
    pub(crate) fn plan(&mut self, floor: i64, limit: usize) -> Plan {
        self.stretch = self.next_stretch(floor, limit);
        let mut plan = Plan {
            again: self.stretch.as_ref().map_or(0, |stretch| stretch.again),
            stretch: self.stretch.clone(),
            ..Plan::default()
        };
        let base = base(limit, self.all.len());
        let mut order: Vec<Lane> = self.numbers();
        order.retain(|lane| plan.stretch.is_none() || rank(*lane) != NORMAL);
        order.sort_unstable_by_key(|lane| (rank(*lane), *lane));
        for lane in order {
            if let Some(state) = self.all.get_mut(&lane) {
                let start = state.cursor.min(floor);
                let again = state.in_flight.range(start.saturating_add(1)..).count();
                state.asked = state.size.max(base) + again;
                plan.again += again;
                plan.lanes.push(smallint(lane));
                plan.starts.push(start);
                plan.sizes.push(i64::try_from(state.asked).unwrap_or(i64::MAX));
            }
        }
        plan
    }

    /// Whether the row is new: then it is in flight from now on and is to be returned. Another message under a number that
    /// is in flight is new.
    pub(crate) fn take(&mut self, lane: Lane, seq: i64, id: Uuid) -> bool {
        let state = self.all.get_mut(&lane);
        state.is_some_and(|state| state.in_flight.insert(seq, id) != Some(id))
    }

    /// Takes note of the rows that were found, when the sequence's head was there. Tells whether there is more.
    ///
    /// A lane that gives full pages gets larger ones, up to its share among those that do: a hot lane that is alone
    /// with its backlog gets it all.
    /// `cut`: lanes with rows that were found and are left for later, and the number of the first of these.
    pub(crate) fn finish(&mut self, found: &Found, cut: &BTreeMap<Lane, i64>, limit: usize, head: i64) -> bool {
        let stretch = self.stretch.take();
        let mut full = Vec::new();
        let base = base(limit, self.all.len());
        for (lane, state) in &mut self.all {
            if stretch.is_some() && rank(*lane) == NORMAL {
                continue;
            }
            if let Some(first_left) = cut.get(lane) {
                state.cursor = first_left.saturating_sub(1);
                continue;
            }
            match found.get(lane) {
                Some(of) if of.rows >= state.asked => {
                    state.cursor = of.last;
                    full.push(*lane);
                }
                _ => {
                    state.cursor = ALL;
                    state.size = (state.size / 2).max(base);
                }
            }
        }
        let share = (limit / full.len().max(1)).max(1);
        for lane in &full {
            if let Some(state) = self.all.get_mut(lane) {
                state.size = (state.size.max(base) * 2).min(share);
            }
        }
        let more = match &stretch {
            Some(stretch) => self.finish_stretch(stretch, found, head),
            None => {
                self.try_stretches(found);
                false
            }
        };
        more || !full.is_empty() || !cut.is_empty()
    }

    /// Whether the row is in flight.
    pub(crate) fn has(&self, lane: Lane, seq: i64, id: Uuid) -> bool {
        let state = self.all.get(&lane);
        state.is_some_and(|state| state.in_flight.get(&seq) == Some(&id))
    }

    /// Lanes without a priority: those are read together. What is urgent must be found behind any backlog.
    pub(crate) fn normal(&self) -> impl Iterator<Item = (Lane, &State)> {
        self.all
            .iter()
            .filter(|(lane, _)| rank(**lane) == NORMAL)
            .map(|(lane, state)| (*lane, state))
    }

    pub(crate) fn normal_mut(&mut self) -> impl Iterator<Item = (Lane, &mut State)> {
        self.all
            .iter_mut()
            .filter(|(lane, _)| rank(**lane) == NORMAL)
            .map(|(lane, state)| (*lane, state))
    }
}

/// Every lane's share.
fn base(limit: usize, lanes: usize) -> usize {
    limit.div_ceil(lanes.max(1))
}

/// The rank of lanes without a priority.
pub(crate) const NORMAL: u8 = 1;

/// Urgent lanes come first, idle ones last: see `outbox_lane_of`.
pub(crate) fn rank(lane: Lane) -> u8 {
    match lane {
        64..=71 => 0,
        72..=79 => 2,
        _ => NORMAL,
    }
}
