//! The lanes of one reader: the rows in flight of each lane, and how many rows to read of it.

use std::collections::{BTreeMap, BTreeSet};

use sendoff::store::{Lane, LaneGrant, ReadRequest, RowId, RowRef, Table};

/// A ready row: its lane, its number and its id.
pub(crate) type Locator = (Lane, i64, RowId);

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    all: BTreeMap<Lane, State>,
    /// The lane that comes first among equals, another one each time: when rows are large, those behind have to wait.
    turn: Lane,
}

#[derive(Debug, Default)]
struct State {
    /// How many rows to ask for, on top of those in flight, when there are too many to look at all of them.
    size: usize,
    /// What was returned and is still in the ready table: its numbers, and whose they are.
    in_flight: BTreeMap<i64, RowId>,
}

impl Lanes {
    /// Reads these from now on.
    pub(crate) fn gained(&mut self, grants: &[LaneGrant]) {
        for grant in grants {
            self.all.insert(grant.lane, State::default());
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

    /// All of them: urgent ones first, idle ones last.
    pub(crate) fn numbers(&self) -> Vec<Lane> {
        let mut numbers: Vec<Lane> = self.all.keys().copied().collect();
        numbers.sort_unstable_by_key(|lane| (rank(*lane), *lane));
        numbers
    }

    /// How many rows are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.all.values().map(|state| state.in_flight.len()).sum()
    }

    /// Takes note of what was settled and forgotten.
    pub(crate) fn begin(&mut self, request: &ReadRequest) {
        let row_refs = request.settled.iter().chain(&request.forgotten);
        for row_ref in row_refs.filter(|row_ref| row_ref.table == Table::Ready) {
            if let Some(state) = self.all.get_mut(&row_ref.lane)
                && state.in_flight.get(&row_ref.seq) == Some(&row_ref.id)
            {
                state.in_flight.remove(&row_ref.seq);
            }
        }
    }

    /// How many rows to ask for in each lane, for about `limit` new ones altogether.
    pub(crate) fn shares(&self, limit: usize) -> Vec<(Lane, usize)> {
        let base = limit.div_ceil(self.all.len().max(1));
        let share = |lane: &Lane| {
            self.all
                .get(lane)
                .map(|state| state.size.max(base) + state.in_flight.len())
        };
        let numbers = self.numbers();
        numbers.iter().filter_map(|lane| Some((*lane, share(lane)?))).collect()
    }

    /// A lane that gives full pages gets larger ones, up to its share among those that do: a hot lane that is alone with
    /// its backlog gets it all. Tells whether there are any.
    pub(crate) fn resize(&mut self, asked: &[(Lane, usize)], found: &[Locator], limit: usize) -> bool {
        let mut counts: BTreeMap<Lane, usize> = BTreeMap::new();
        for (lane, ..) in found {
            *counts.entry(*lane).or_default() += 1;
        }
        let is_full = |(lane, asked): &&(Lane, usize)| counts.get(lane).is_some_and(|count| count >= asked);
        let full: BTreeSet<Lane> = asked.iter().filter(is_full).map(|(lane, _)| *lane).collect();
        let base = limit.div_ceil(self.all.len().max(1));
        let share = (limit / full.len().max(1)).max(1);
        for (lane, state) in &mut self.all {
            state.size = if full.contains(lane) {
                (state.size.max(base) * 2).min(share)
            } else {
                state.size / 2
            };
        }
        !full.is_empty()
    }

    /// Of rows that were found, those that are not in flight, in the order in which they are to be returned. Another message
    /// under a number that is in flight is new.
    pub(crate) fn fresh(&mut self, found: &[Locator]) -> Vec<(Lane, i64)> {
        self.turn = (self.turn + 7) % 64;
        let turn = self.turn;
        let is_new = |(lane, seq, id): &&Locator| {
            let state = self.all.get(lane);
            state.is_some_and(|state| state.in_flight.get(seq) != Some(id))
        };
        let new = found.iter().filter(is_new).map(|(lane, seq, _)| (*lane, *seq));
        let mut fresh: Vec<(Lane, i64)> = new.collect();
        fresh.sort_unstable_by_key(|(lane, seq)| (rank(*lane), *lane < turn, *lane, *seq));
        fresh
    }

    /// This row is returned.
    pub(crate) fn take(&mut self, row_ref: &RowRef) {
        if let Some(state) = self.all.get_mut(&row_ref.lane) {
            state.in_flight.insert(row_ref.seq, row_ref.id.clone());
        }
    }
}

/// Urgent lanes come first, idle ones last: see the trigger of the schema.
fn rank(lane: Lane) -> u8 {
    match lane {
        64..=71 => 0,
        72..=79 => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sendoff::Uuid;

    fn lanes(numbers: &[Lane]) -> Lanes {
        let grant = |lane: &Lane| LaneGrant {
            lane: *lane,
            epoch: 1,
            crashes: 0,
            quarantined: None,
        };
        let mut lanes = Lanes::default();
        lanes.gained(&numbers.iter().map(grant).collect::<Vec<_>>());
        lanes
    }

    fn row_ref(seq: i64, id: u128) -> RowRef {
        RowRef {
            table: Table::Ready,
            lane: 1,
            seq,
            id: Uuid::from_u128(id).into(),
            sink: None,
            locator: 0,
        }
    }

    fn locator(lane: Lane, seq: i64) -> Locator {
        (lane, seq, Uuid::from_u128(7).into())
    }

    #[test]
    fn a_row_with_a_lower_number_comes_before_those_that_were_read_already() {
        let mut lanes = lanes(&[1, 64]);
        lanes.take(&row_ref(7, 7));
        lanes.take(&row_ref(9, 7));
        // 5 was committed late.
        let found = [
            locator(1, 5),
            locator(1, 7),
            locator(1, 9),
            locator(1, 11),
            locator(64, 20),
        ];
        assert_eq!(lanes.fresh(&found), [(64, 20), (1, 5), (1, 11)]);
    }

    #[test]
    fn a_forgotten_row_is_new_again_and_a_lost_lane_is_nobodys() {
        let mut lanes = lanes(&[1]);
        lanes.take(&row_ref(7, 7));
        assert!(lanes.fresh(&[locator(1, 7)]).is_empty());
        let forget = |row_ref| ReadRequest {
            forgotten: vec![row_ref],
            ..ReadRequest::default()
        };
        lanes.begin(&forget(row_ref(7, 8)));
        assert!(
            lanes.fresh(&[locator(1, 7)]).is_empty(),
            "what was forgotten is another message"
        );
        lanes.begin(&forget(row_ref(7, 7)));
        assert_eq!(lanes.fresh(&[locator(1, 7)]), [(1, 7)]);
        lanes.lost(&[1]);
        assert!(lanes.fresh(&[locator(1, 7)]).is_empty());
    }

    #[test]
    fn another_message_under_a_number_in_flight_is_new() {
        let mut lanes = lanes(&[1]);
        lanes.take(&row_ref(7, 8));
        assert_eq!(lanes.fresh(&[locator(1, 7)]), [(1, 7)]);
        lanes.take(&row_ref(7, 7));
        assert!(lanes.fresh(&[locator(1, 7)]).is_empty());
        assert_eq!(lanes.in_flight(), 1);
    }

    #[test]
    fn a_hot_lane_that_is_alone_gets_all_in_the_end() {
        let mut lanes = lanes(&(0..80).collect::<Vec<_>>());
        for _ in 0..10 {
            let asked = lanes.shares(1000);
            let hot: Vec<Locator> = (0..asked[3].1).map(|n| locator(asked[3].0, n as i64)).collect();
            assert!(lanes.resize(&asked, &hot, 1000));
        }
        let asked = lanes.shares(1000);
        assert_eq!((asked[3].1, asked[4].1), (1000, 13));
    }
}
