//! The lanes of one reader: how far each was read, how much to read of each, and what the relay has in its hands.

use std::collections::{BTreeMap, BTreeSet};

use sendoff::store::{Lane, LaneGrant, Place, ReadRequest, Room};

/// Everything that is visible has been read.
const ALL: i64 = i64::MAX;

#[derive(Debug, Default)]
pub(crate) struct Lanes(BTreeMap<Lane, State>);

#[derive(Debug)]
struct State {
    /// The last `seq` of a page that came back full, else [`ALL`].
    cursor: i64,
    /// How many rows to ask for, on top of those in hand.
    size: usize,
    /// How many were asked for.
    asked: usize,
    /// What was returned and is still in the ready table.
    in_hand: BTreeSet<i64>,
}

/// What to read: one entry a lane in each list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) lanes: Vec<i16>,
    pub(crate) starts: Vec<i64>,
    pub(crate) sizes: Vec<i64>,
}

impl Lanes {
    /// Reads these from their beginning.
    pub(crate) fn gained(&mut self, grants: &[LaneGrant]) {
        for grant in grants {
            let fresh = State {
                cursor: 0,
                size: 1,
                asked: 0,
                in_hand: BTreeSet::new(),
            };
            self.0.insert(grant.lane, fresh);
        }
    }

    pub(crate) fn lost(&mut self, lanes: &[Lane]) {
        for lane in lanes {
            self.0.remove(lane);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub(crate) fn numbers(&self) -> Vec<Lane> {
        self.0.keys().copied().collect()
    }

    /// Whether all that was visible has been read: what comes next are a few rows.
    pub(crate) fn caught_up(&self) -> bool {
        self.0.values().all(|state| state.cursor == ALL)
    }

    /// Takes note of what was settled and forgotten. A forgotten row is read again: the cursor goes back before it.
    pub(crate) fn begin(&mut self, request: &ReadRequest) {
        let ready = |place: &&Place| place.room == Room::Ready;
        for place in request.settled.iter().filter(ready) {
            if let Some(state) = self.0.get_mut(&place.lane) {
                state.in_hand.remove(&place.seq);
            }
        }
        for place in request.forgotten.iter().filter(ready) {
            if let Some(state) = self.0.get_mut(&place.lane) {
                state.in_hand.remove(&place.seq);
                state.cursor = state.cursor.min(place.seq.saturating_sub(1));
            }
        }
    }

    /// Starts every lane at its beginning again.
    pub(crate) fn rewind(&mut self) {
        for state in self.0.values_mut() {
            state.cursor = 0;
        }
    }

    /// What to read from `floor` on: urgent lanes first, idle ones last. About `limit` rows, plus what is in hand and
    /// will be found again.
    pub(crate) fn plan(&mut self, floor: i64, limit: usize) -> Plan {
        let mut plan = Plan::default();
        let base = base(limit, self.0.len());
        let mut order: Vec<Lane> = self.numbers();
        order.sort_unstable_by_key(|lane| (rank(*lane), *lane));
        for lane in order {
            if let Some(state) = self.0.get_mut(&lane) {
                let start = state.cursor.min(floor);
                let again = state.in_hand.range(start.saturating_add(1)..).count();
                state.asked = state.size.max(base) + again;
                plan.lanes.push(i16::try_from(lane).unwrap_or(i16::MAX));
                plan.starts.push(start);
                plan.sizes.push(i64::try_from(state.asked).unwrap_or(i64::MAX));
            }
        }
        plan
    }

    /// Whether the row is new: then it is in hand from now on and is to be returned.
    pub(crate) fn take(&mut self, lane: Lane, seq: i64) -> bool {
        self.0.get_mut(&lane).is_some_and(|state| state.in_hand.insert(seq))
    }

    /// Takes note of how many rows were found in each lane and which the last one was. Tells whether there is more.
    ///
    /// A lane that gives full pages gets larger ones, up to its share among those that do: a hot lane that is alone
    /// with its backlog gets it all.
    pub(crate) fn finish(&mut self, found: &BTreeMap<Lane, (usize, i64)>, limit: usize) -> bool {
        let mut full = Vec::new();
        let base = base(limit, self.0.len());
        for (lane, state) in &mut self.0 {
            match found.get(lane) {
                Some((rows, last)) if *rows >= state.asked => {
                    state.cursor = *last;
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
            if let Some(state) = self.0.get_mut(lane) {
                state.size = (state.size.max(base) * 2).min(share);
            }
        }
        !full.is_empty()
    }
}

/// Every lane's share.
fn base(limit: usize, lanes: usize) -> usize {
    limit.div_ceil(lanes.max(1))
}

/// Urgent lanes come first, idle ones last: see `outbox_lane_of`.
pub(crate) fn rank(lane: Lane) -> u8 {
    match lane {
        64..=71 => 0,
        72..=79 => 2,
        _ => 1,
    }
}
