//! The lanes of one reader: what the relay has of each in its hands, and how much to read of each.

use std::collections::{BTreeMap, BTreeSet};

use sendoff::store::{Lane, LaneGrant, ReadRequest, Room};

/// A ready row: its lane and its number.
pub(crate) type Spot = (Lane, i64);

#[derive(Debug, Default)]
pub(crate) struct Lanes(BTreeMap<Lane, State>);

#[derive(Debug, Default)]
struct State {
    /// How many rows to ask for, on top of those in hand, when there are too many to look at all of them.
    size: usize,
    /// What was returned and is still in the ready table.
    in_hand: BTreeSet<i64>,
}

impl Lanes {
    /// Reads these from now on.
    pub(crate) fn gained(&mut self, grants: &[LaneGrant]) {
        for grant in grants {
            self.0.insert(grant.lane, State::default());
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

    /// All of them: urgent ones first, idle ones last.
    pub(crate) fn numbers(&self) -> Vec<Lane> {
        let mut numbers: Vec<Lane> = self.0.keys().copied().collect();
        numbers.sort_unstable_by_key(|lane| (rank(*lane), *lane));
        numbers
    }

    /// How many rows are in hand.
    pub(crate) fn in_hand(&self) -> usize {
        self.0.values().map(|state| state.in_hand.len()).sum()
    }

    /// Takes note of what was settled and forgotten.
    pub(crate) fn begin(&mut self, request: &ReadRequest) {
        let places = request.settled.iter().chain(&request.forgotten);
        for place in places.filter(|place| place.room == Room::Ready) {
            if let Some(state) = self.0.get_mut(&place.lane) {
                state.in_hand.remove(&place.seq);
            }
        }
    }

    /// How many rows to ask for in each lane, for about `limit` new ones altogether.
    pub(crate) fn shares(&self, limit: usize) -> Vec<(Lane, usize)> {
        let base = limit.div_ceil(self.0.len().max(1));
        let share = |lane: &Lane| self.0.get(lane).map(|state| state.size.max(base) + state.in_hand.len());
        let numbers = self.numbers();
        numbers.iter().filter_map(|lane| Some((*lane, share(lane)?))).collect()
    }

    /// A lane that gives full pages gets larger ones, up to its share among those that do: a hot lane that is alone with
    /// its backlog gets it all. Tells whether there are any.
    pub(crate) fn resize(&mut self, asked: &[(Lane, usize)], found: &[Spot], limit: usize) -> bool {
        let mut counts: BTreeMap<Lane, usize> = BTreeMap::new();
        for (lane, _) in found {
            *counts.entry(*lane).or_default() += 1;
        }
        let is_full = |(lane, asked): &&(Lane, usize)| counts.get(lane).is_some_and(|count| count >= asked);
        let full: BTreeSet<Lane> = asked.iter().filter(is_full).map(|(lane, _)| *lane).collect();
        let base = limit.div_ceil(self.0.len().max(1));
        let share = (limit / full.len().max(1)).max(1);
        for (lane, state) in &mut self.0 {
            state.size = if full.contains(lane) {
                (state.size.max(base) * 2).min(share)
            } else {
                state.size / 2
            };
        }
        !full.is_empty()
    }

    /// Of rows that were found, those that are not in hand, in the order in which they are to be returned.
    pub(crate) fn fresh(&self, found: &[Spot]) -> Vec<Spot> {
        let is_new = |(lane, seq): &&Spot| self.0.get(lane).is_some_and(|state| !state.in_hand.contains(seq));
        let mut fresh: Vec<Spot> = found.iter().filter(is_new).copied().collect();
        fresh.sort_unstable_by_key(|(lane, seq)| (rank(*lane), *lane, *seq));
        fresh
    }

    /// This row is returned.
    pub(crate) fn take(&mut self, (lane, seq): Spot) {
        if let Some(state) = self.0.get_mut(&lane) {
            state.in_hand.insert(seq);
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
    use sendoff::store::Place;

    fn lanes(numbers: &[Lane]) -> Lanes {
        let grant = |lane: &Lane| LaneGrant {
            lane: *lane,
            epoch: 1,
            crashes: 0,
            suspect: None,
        };
        let mut lanes = Lanes::default();
        lanes.gained(&numbers.iter().map(grant).collect::<Vec<_>>());
        lanes
    }

    #[test]
    fn a_row_with_a_lower_number_comes_before_those_that_were_read_already() {
        let mut lanes = lanes(&[1, 64]);
        for spot in lanes.fresh(&[(1, 7), (1, 9)]) {
            lanes.take(spot);
        }
        // 5 was committed late.
        let fresh = lanes.fresh(&[(1, 5), (1, 7), (1, 9), (1, 11), (64, 20)]);
        assert_eq!(fresh, [(64, 20), (1, 5), (1, 11)]);
    }

    #[test]
    fn a_forgotten_row_is_new_again_and_a_lost_lane_is_nobodys() {
        let mut lanes = lanes(&[1]);
        lanes.take((1, 7));
        assert!(lanes.fresh(&[(1, 7)]).is_empty());
        let place = Place {
            room: Room::Ready,
            lane: 1,
            seq: 7,
            leg: None,
            spot: 0,
        };
        lanes.begin(&ReadRequest {
            forgotten: vec![place],
            ..ReadRequest::default()
        });
        assert_eq!(lanes.fresh(&[(1, 7)]), [(1, 7)]);
        lanes.lost(&[1]);
        assert!(lanes.fresh(&[(1, 7)]).is_empty());
    }

    #[test]
    fn a_hot_lane_that_is_alone_gets_all_in_the_end() {
        let mut lanes = lanes(&(0..80).collect::<Vec<_>>());
        for _ in 0..10 {
            let asked = lanes.shares(1000);
            let hot: Vec<Spot> = (0..asked[3].1).map(|n| (asked[3].0, n as i64)).collect();
            assert!(lanes.resize(&asked, &hot, 1000));
        }
        let asked = lanes.shares(1000);
        assert_eq!((asked[3].1, asked[4].1), (1000, 13));
    }
}
