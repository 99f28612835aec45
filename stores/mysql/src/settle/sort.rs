//! Settlements sorted by the statements that carry them out.

use std::collections::BTreeMap;

use sendoff::store::{Lane, RetryState, Room, Settlement, Verdict};
use serde_json::{Value, json};

use crate::decode::{hex, micros};

/// The longest error that is kept, in characters.
const LONGEST_ERROR: usize = 2000;

/// Rows as a statement takes them: one JSON array each, texts in hexadecimal.
pub(super) type Rows = Vec<Value>;

/// Keys by lane, key and leg, each once, with the lowest `seq` that it was named with.
pub(super) type Keys<'a> = BTreeMap<(Lane, &'a str, &'a str), i64>;

/// Each list goes to one statement.
#[derive(Debug, Default)]
pub(super) struct Sorted<'a> {
    /// Ready rows that are done.
    pub(super) delivered: Rows,
    /// Waiting rows that are done.
    pub(super) done: Rows,
    /// Confirmed legs of ready rows, and of waiting rows that had not been routed, which have other legs, too.
    pub(super) confirmed: Rows,
    pub(super) confirmed_waiting: Rows,
    /// Legs of ready rows that wait.
    pub(super) ready: Rows,
    pub(super) ready_held: Rows,
    /// Waiting rows that wait again.
    pub(super) again: Rows,
    pub(super) again_held: Rows,
    /// Legs that wait, out of waiting rows that had no leg yet.
    pub(super) split: Rows,
    pub(super) split_held: Rows,
    pub(super) dead_ready: Rows,
    pub(super) dead_waiting: Rows,
    /// Rows whose legs are elsewhere now.
    pub(super) moved_ready: Rows,
    pub(super) moved_waiting: Rows,
    /// Places of rows that are held, to look whether something holds them.
    pub(super) held: Rows,
    /// Keys of which a row does not stand in the way any more.
    pub(super) gone: Keys<'a>,
    /// Keys of which a row has to wait: so have those behind it.
    pub(super) behind: Keys<'a>,
    /// Whether something is due at once.
    pub(super) due: bool,
}

impl<'a> Sorted<'a> {
    /// Of these settlements, those of lanes that are held; `epochs` tells with which epoch.
    pub(super) fn new(settlements: &'a [Settlement], epochs: &BTreeMap<Lane, i64>) -> Self {
        let mut sorted = Self::default();
        for settlement in settlements {
            if epochs.get(&settlement.place.lane) != Some(&settlement.epoch) {
                continue;
            }
            match (settlement.place.room, settlement.place.leg.as_deref()) {
                (Room::Ready, _) if all_delivered(settlement) => sorted.delivered.push(spot(settlement)),
                (Room::Ready, _) => sorted.ready_row(settlement),
                (Room::Waiting, Some(leg)) if !leg.is_empty() => sorted.waiting_leg(settlement, leg),
                (Room::Waiting, _) => sorted.unrouted_row(settlement),
            }
        }
        sorted
    }

    fn ready_row(&mut self, settlement: &'a Settlement) {
        for leg in &settlement.legs {
            match &leg.verdict {
                Verdict::Delivered => self.confirmed.push(place(settlement, &leg.leg)),
                Verdict::Retry { delay, .. } => {
                    self.due |= delay.is_zero();
                    self.ready.push(wait(settlement, &leg.leg, &leg.verdict));
                }
                Verdict::Hold => {
                    self.hold(settlement, &leg.leg);
                    self.ready_held.push(wait(settlement, &leg.leg, &leg.verdict));
                }
                Verdict::Dead { .. } => self.dead_ready.push(death(settlement, "", &leg.leg, &leg.verdict)),
            }
        }
        self.moved_ready.push(spot(settlement));
    }

    /// A row that waits for one sink is that sink's alone, whatever the verdict calls it.
    fn waiting_leg(&mut self, settlement: &'a Settlement, leg: &'a str) {
        let verdict = settlement.legs.first().map_or(&Verdict::Delivered, |leg| &leg.verdict);
        match verdict {
            Verdict::Delivered => self.done.push(place(settlement, leg)),
            Verdict::Retry { delay, .. } => {
                self.due |= delay.is_zero();
                self.again.push(wait(settlement, leg, verdict));
            }
            Verdict::Hold => {
                self.hold(settlement, leg);
                self.again_held.push(wait(settlement, leg, verdict));
            }
            Verdict::Dead { .. } => {
                self.dead_waiting.push(death(settlement, leg, leg, verdict));
                self.moved_waiting.push(place(settlement, leg));
            }
        }
        self.note_key(settlement, leg, stands_in_the_way(verdict));
    }

    /// A row that was not routed yet falls into its legs. It stood in the way of all of them.
    fn unrouted_row(&mut self, settlement: &'a Settlement) {
        let (is_done, mut stays) = (all_delivered(settlement), false);
        for leg in &settlement.legs {
            let in_place = leg.leg.is_empty();
            match &leg.verdict {
                Verdict::Delivered if is_done => {}
                Verdict::Delivered => {
                    let (lane, seq) = (settlement.place.lane, settlement.place.seq);
                    self.confirmed_waiting.push(json!([lane, seq, "", hex(&leg.leg)]));
                }
                Verdict::Retry { delay, .. } => {
                    self.due |= delay.is_zero();
                    let row = wait(settlement, &leg.leg, &leg.verdict);
                    if in_place { &mut self.again } else { &mut self.split }.push(row);
                    stays |= in_place;
                }
                Verdict::Hold => {
                    self.hold(settlement, &leg.leg);
                    let row = wait(settlement, &leg.leg, &leg.verdict);
                    if in_place {
                        &mut self.again_held
                    } else {
                        &mut self.split_held
                    }
                    .push(row);
                    stays |= in_place;
                }
                Verdict::Dead { .. } => self.dead_waiting.push(death(settlement, "", &leg.leg, &leg.verdict)),
            }
            if stands_in_the_way(&leg.verdict) {
                self.note_key(settlement, &leg.leg, true);
            }
        }
        if stays {
            return;
        }
        if is_done {
            self.done.push(place(settlement, ""));
        } else {
            self.moved_waiting.push(place(settlement, ""));
        }
        self.note_key(settlement, "", false);
    }

    fn hold(&mut self, settlement: &Settlement, leg: &str) {
        if settlement.key.is_some() {
            self.held.push(place(settlement, leg));
        } else {
            self.due = true;
        }
    }

    fn note_key(&mut self, settlement: &'a Settlement, leg: &'a str, stands_in_the_way: bool) {
        let Some(key) = settlement.key.as_deref() else { return };
        let keys = if stands_in_the_way {
            &mut self.behind
        } else {
            &mut self.gone
        };
        let seq = settlement.place.seq;
        let lowest = keys.entry((settlement.place.lane, key, leg)).or_insert(seq);
        *lowest = seq.min(*lowest);
    }
}

/// Keys as rows: lane, key, leg, seq.
pub(super) fn key_rows(keys: &Keys<'_>) -> Rows {
    keys.iter()
        .map(|((lane, key, leg), seq)| json!([lane, hex(key), hex(leg), seq]))
        .collect()
}

fn spot(settlement: &Settlement) -> Value {
    json!([settlement.place.lane, settlement.place.seq])
}

fn place(settlement: &Settlement, leg: &str) -> Value {
    json!([settlement.place.lane, settlement.place.seq, hex(leg)])
}

/// Lane, seq, leg, state, delay, whether charged, error.
fn wait(settlement: &Settlement, leg: &str, verdict: &Verdict) -> Value {
    let (lane, seq, leg) = (settlement.place.lane, settlement.place.seq, hex(leg));
    match verdict {
        Verdict::Retry {
            state,
            delay,
            charged,
            error,
        } => {
            let (delay, charged) = (micros(*delay), i32::from(*charged));
            json!([lane, seq, leg, state.as_str(), delay, charged, hex(&kept(error))])
        }
        Verdict::Hold | Verdict::Delivered | Verdict::Dead { .. } => json!([lane, seq, leg, "held", 0, 0, null]),
    }
}

/// Lane, seq, the leg it had, the leg it dies at, reason, error, whether charged, whether it blocks.
fn death(settlement: &Settlement, had: &str, leg: &str, verdict: &Verdict) -> Value {
    let (lane, seq) = (settlement.place.lane, settlement.place.seq);
    let Verdict::Dead {
        reason,
        error,
        charged,
        blocks,
    } = verdict
    else {
        return Value::Null;
    };
    let (error, charged, blocks) = (hex(&kept(error)), i32::from(*charged), i32::from(*blocks));
    json!([lane, seq, hex(had), hex(leg), reason.as_str(), error, charged, blocks])
}

fn all_delivered(settlement: &Settlement) -> bool {
    settlement.legs.iter().all(|leg| leg.verdict == Verdict::Delivered)
}

fn stands_in_the_way(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Delivered => false,
        Verdict::Retry { state, .. } => match state {
            RetryState::Retry | RetryState::Down => true,
            RetryState::Parked => false,
        },
        Verdict::Hold => true,
        Verdict::Dead { blocks, .. } => *blocks,
    }
}

/// An error as it is kept: not longer than people read, and without the character that ends a text in C.
fn kept(error: &str) -> String {
    error.chars().filter(|c| *c != '\0').take(LONGEST_ERROR).collect()
}

#[cfg(test)]
mod tests;
