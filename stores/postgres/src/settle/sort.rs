//! Settlements sorted by the statements that carry them out.

use std::collections::BTreeMap;

use sendoff::store::{Lane, RetryState, Room, Settlement, Verdict};

use super::keys::Keys;
use super::rows::{Confirmed, Deaths, Delivered, Places, Waits};
use crate::decode::{micros, smallint};
use crate::tid::Tid;

/// Each list goes to one statement.
#[derive(Debug, Default)]
pub(super) struct Sorted<'a> {
    /// Ready rows that are done.
    pub(super) delivered: Delivered,
    /// Waiting rows that are done.
    pub(super) done: Places<'a>,
    /// Confirmed legs of ready rows, and of waiting rows that had not been routed, which have other legs, too.
    pub(super) confirmed: Places<'a>,
    pub(super) confirmed_waiting: Confirmed<'a>,
    /// Legs of ready rows that wait.
    pub(super) ready: Waits<'a>,
    pub(super) ready_held: Waits<'a>,
    /// Waiting rows that wait again.
    pub(super) again: Waits<'a>,
    pub(super) again_held: Waits<'a>,
    /// Legs that wait, out of waiting rows that had no leg yet.
    pub(super) split: Waits<'a>,
    pub(super) split_held: Waits<'a>,
    pub(super) dead_ready: Deaths<'a>,
    pub(super) dead_waiting: Deaths<'a>,
    /// Rows whose legs are elsewhere now.
    pub(super) moved_ready: Places<'a>,
    pub(super) moved_waiting: Places<'a>,
    /// Keys of which a row does not stand in the way any more.
    pub(super) gone: Keys<'a>,
    /// Keys of which a row has to wait: so have those behind it.
    pub(super) behind: Keys<'a>,
}

impl<'a> Sorted<'a> {
    /// Of these settlements, those of lanes that are held; `epochs` tells with which epoch.
    pub(super) fn new(settlements: &'a [Settlement], epochs: &BTreeMap<Lane, i64>) -> Self {
        let mut sorted = Self::default();
        let mut delivered: BTreeMap<Lane, Vec<(i64, Tid)>> = BTreeMap::new();
        for settlement in settlements {
            let (lane, seq) = (settlement.place.lane, settlement.place.seq);
            if epochs.get(&lane) != Some(&settlement.epoch) {
                continue;
            }
            match (settlement.place.room, settlement.place.leg.as_deref()) {
                (Room::Ready, _) if all_delivered(settlement) => {
                    let spot = Tid::from_spot(settlement.place.spot);
                    delivered.entry(lane).or_default().push((seq, spot));
                }
                (Room::Ready, _) => sorted.ready_row(settlement),
                (Room::Waiting, Some(leg)) if !leg.is_empty() => sorted.waiting_leg(settlement, leg),
                (Room::Waiting, _) => sorted.unrouted_row(settlement),
            }
        }
        for (lane, rows) in delivered {
            sorted.delivered.lanes.push(smallint(lane));
            sorted
                .delivered
                .epochs
                .push(epochs.get(&lane).copied().unwrap_or_default());
            sorted
                .delivered
                .counts
                .push(i32::try_from(rows.len()).unwrap_or(i32::MAX));
            for (seq, spot) in rows {
                sorted.delivered.seqs.push(seq);
                sorted.delivered.spots.push(spot);
            }
        }
        sorted
    }

    fn ready_row(&mut self, settlement: &'a Settlement) {
        let (lane, seq) = (settlement.place.lane, settlement.place.seq);
        for leg in &settlement.legs {
            let place = (lane, seq, &*leg.leg);
            match &leg.verdict {
                Verdict::Delivered => self.confirmed.push(lane, seq, &leg.leg),
                Verdict::Retry {
                    state,
                    delay,
                    charged,
                    error,
                } => {
                    self.ready.push(place, *state, micros(*delay), *charged, error);
                }
                Verdict::Hold => self.ready_held.push_held(place),
                Verdict::Dead {
                    reason,
                    error,
                    charged,
                    blocks,
                } => {
                    self.dead_ready
                        .push((lane, seq, ""), &leg.leg, (*reason, error), *charged, *blocks);
                }
            }
        }
        self.moved_ready.push(lane, seq, "");
    }

    /// A row that waits for one sink is that sink's alone, whatever the verdict calls it.
    fn waiting_leg(&mut self, settlement: &'a Settlement, leg: &'a str) {
        let (lane, seq) = (settlement.place.lane, settlement.place.seq);
        let place = (lane, seq, leg);
        let stands_in_the_way = match settlement.legs.first().map(|leg| &leg.verdict) {
            None | Some(Verdict::Delivered) => {
                self.done.push(lane, seq, leg);
                false
            }
            Some(Verdict::Retry {
                state,
                delay,
                charged,
                error,
            }) => {
                self.again.push(place, *state, micros(*delay), *charged, error);
                blocks_followers(*state)
            }
            Some(Verdict::Hold) => {
                self.again_held.push_held(place);
                true
            }
            Some(Verdict::Dead {
                reason,
                error,
                charged,
                blocks,
            }) => {
                self.dead_waiting.push(place, leg, (*reason, error), *charged, *blocks);
                self.moved_waiting.push(lane, seq, leg);
                *blocks
            }
        };
        self.note_key(settlement, leg, stands_in_the_way);
    }

    /// A row that was not routed yet falls into its legs. It stood in the way of all of them.
    fn unrouted_row(&mut self, settlement: &'a Settlement) {
        let (lane, seq) = (settlement.place.lane, settlement.place.seq);
        let is_done = all_delivered(settlement);
        if is_done {
            self.done.push(lane, seq, "");
        } else {
            self.moved_waiting.push(lane, seq, "");
        }
        for leg in &settlement.legs {
            let place = (lane, seq, &*leg.leg);
            let stands_in_the_way = match &leg.verdict {
                Verdict::Delivered => {
                    if !is_done {
                        self.confirmed_waiting.push(lane, seq, &leg.leg);
                    }
                    false
                }
                Verdict::Retry {
                    state,
                    delay,
                    charged,
                    error,
                } => {
                    self.split.push(place, *state, micros(*delay), *charged, error);
                    blocks_followers(*state)
                }
                Verdict::Hold => {
                    self.split_held.push_held(place);
                    true
                }
                Verdict::Dead {
                    reason,
                    error,
                    charged,
                    blocks,
                } => {
                    self.dead_waiting
                        .push((lane, seq, ""), &leg.leg, (*reason, error), *charged, *blocks);
                    *blocks
                }
            };
            if stands_in_the_way {
                self.note_key(settlement, &leg.leg, true);
            }
        }
        self.note_key(settlement, "", false);
    }

    fn note_key(&mut self, settlement: &'a Settlement, leg: &'a str, stands_in_the_way: bool) {
        let Some(key) = settlement.key.as_deref() else { return };
        let keys = if stands_in_the_way {
            &mut self.behind
        } else {
            &mut self.gone
        };
        keys.push(settlement.place.lane, key, leg, settlement.place.seq);
    }

    /// Whether there is nothing but ready rows that are done.
    pub(super) fn only_delivered(&self) -> bool {
        self.done.is_empty()
            && self.again.is_empty()
            && self.again_held.is_empty()
            && self.moved_ready.is_empty()
            && self.moved_waiting.is_empty()
    }
}

fn all_delivered(settlement: &Settlement) -> bool {
    settlement.legs.iter().all(|leg| leg.verdict == Verdict::Delivered)
}

fn blocks_followers(state: RetryState) -> bool {
    match state {
        RetryState::Retry | RetryState::Down => true,
        RetryState::Parked => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use sendoff::store::{LegSettlement, Place};

    use super::*;

    fn settlement(room: Room, seq: i64, leg: Option<&str>, epoch: i64, verdicts: &[(&str, Verdict)]) -> Settlement {
        Settlement {
            place: Place {
                room,
                lane: 7,
                seq,
                leg: leg.map(Arc::from),
                spot: 0,
            },
            epoch,
            legs: verdicts
                .iter()
                .map(|(leg, verdict)| LegSettlement {
                    leg: Arc::from(*leg),
                    verdict: verdict.clone(),
                })
                .collect(),
            key: Some(Arc::from("k")),
        }
    }

    fn retry(state: RetryState) -> Verdict {
        Verdict::Retry {
            state,
            delay: Duration::ZERO,
            charged: true,
            error: "no".to_owned(),
        }
    }

    #[test]
    fn delivered_ready_rows_alone_take_the_short_way() {
        let epochs = BTreeMap::from([(7, 2)]);
        let all = [
            settlement(Room::Ready, 1, None, 2, &[]),
            settlement(Room::Ready, 2, None, 2, &[("a", Verdict::Delivered)]),
            settlement(Room::Ready, 3, None, 1, &[("a", retry(RetryState::Retry))]),
        ];
        let sorted = Sorted::new(&all, &epochs);
        assert!(sorted.only_delivered(), "a settlement of an old epoch is passed over");
        assert_eq!(sorted.delivered.seqs, [1, 2]);
        let waiting = [settlement(Room::Waiting, 1, Some("a"), 2, &[])];
        assert!(!Sorted::new(&waiting, &epochs).only_delivered());
    }

    #[test]
    fn a_parked_row_lets_its_followers_go_and_a_retried_one_does_not() {
        let epochs = BTreeMap::from([(7, 2)]);
        for (state, gone) in [
            (RetryState::Parked, true),
            (RetryState::Retry, false),
            (RetryState::Down, false),
        ] {
            let all = [settlement(Room::Waiting, 5, Some("a"), 2, &[("a", retry(state))])];
            let sorted = Sorted::new(&all, &epochs);
            assert_eq!(
                (!sorted.gone.is_empty(), !sorted.behind.is_empty()),
                (gone, !gone),
                "{state:?}"
            );
        }
    }
}
