//! Settlements sorted by what they cost.

use std::collections::BTreeMap;

use sendoff::store::{Lane, Room, Settlement, Verdict};

use crate::lease::Held;

/// The longest error that is kept, in characters.
const LONGEST_ERROR: usize = 2000;

/// What is to be done, and in which lanes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The epoch of each lane; `None` where settlements disagree, so that some of them are of a time before the last
    /// change of hands: the whole lane is refused then.
    lanes: BTreeMap<Lane, Option<i64>>,
    /// Ready rows that every sink confirmed.
    pub(super) delivered: Vec<(Lane, i64)>,
    /// Everything else.
    pub(super) rows: Vec<Settlement>,
}

impl Plan {
    pub(super) fn new(settlements: &[Settlement]) -> Self {
        let mut plan = Self::default();
        for settlement in settlements {
            let epoch = plan
                .lanes
                .entry(settlement.place.lane)
                .or_insert(Some(settlement.epoch));
            if *epoch != Some(settlement.epoch) {
                *epoch = None;
            }
            let confirmed = settlement.legs.iter().all(|leg| leg.verdict == Verdict::Delivered);
            if confirmed && settlement.place.room == Room::Ready {
                plan.delivered.push((settlement.place.lane, settlement.place.seq));
            } else {
                plan.rows.push(settlement.clone());
            }
        }
        plan
    }

    /// Drops what is in lanes that are not held with the epoch of the settlements, and returns these lanes.
    pub(super) fn drop_lost(&mut self, held: &Held) -> Vec<Lane> {
        let is_held = |lane: Lane, epoch: Option<i64>| epoch.is_some_and(|epoch| held.lanes.contains(&(lane, epoch)));
        let lost: Vec<Lane> = self
            .lanes
            .iter()
            .filter(|(lane, epoch)| !is_held(**lane, **epoch))
            .map(|(lane, _)| *lane)
            .collect();
        if !lost.is_empty() {
            self.delivered.retain(|(lane, _)| !lost.contains(lane));
            self.rows.retain(|row| !lost.contains(&row.place.lane));
        }
        lost
    }
}

/// An error as it is kept: not longer than people read, and without the character that ends a text in C.
pub(super) fn kept_error(error: &str) -> String {
    error.chars().filter(|c| *c != '\0').take(LONGEST_ERROR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sendoff::store::Place;

    fn delivered(lane: Lane, seq: i64, epoch: i64) -> Settlement {
        Settlement {
            place: Place {
                room: Room::Ready,
                lane,
                seq,
                leg: None,
                spot: 0,
            },
            epoch,
            legs: Vec::new(),
            key: None,
        }
    }

    #[test]
    fn a_lane_with_two_epochs_is_lost_as_a_whole() {
        let mut plan = Plan::new(&[delivered(1, 1, 7), delivered(1, 2, 8), delivered(2, 3, 7)]);
        let held = Held {
            lanes: vec![(1, 8), (2, 7)],
            now: 0,
        };
        assert_eq!(plan.drop_lost(&held), [1]);
        assert_eq!(plan.delivered, [(2, 3)]);
    }

    #[test]
    fn errors_are_cut_between_characters_and_hold_no_nul() {
        let kept = kept_error(&format!("a\0{}", "é".repeat(5000)));
        assert_eq!(kept.chars().count(), LONGEST_ERROR);
        assert!(kept.starts_with("aé"));
    }
}
