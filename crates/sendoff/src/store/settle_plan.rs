//! What settlements become, step by step: the one place that says so. Stores only write the steps.
//!
//! | the row is | verdict | becomes |
//! |---|---|---|
//! | ready, every sink confirmed | delivered | [`delivered`](SettlePlan::delivered): the row goes |
//! | ready | delivered, of several legs | [`confirmed`](SettlePlan::confirmed): a copy, where delivered messages are kept |
//! | ready | retry, hold | [`wait_ready`](SettlePlan::wait_ready), `hold_ready`: a waiting row for the leg |
//! | ready | dead | [`die_ready`](SettlePlan::die_ready): a dead letter for the leg |
//! | ready, of several legs | any | [`remove_ready`](SettlePlan::remove_ready): the row goes, after all of these |
//! | waiting for a sink | delivered | [`done`](SettlePlan::done): the row goes |
//! | waiting for a sink | retry, hold | [`wait_again`](SettlePlan::wait_again), `hold_again`: the row stays |
//! | waiting for a sink | dead | [`die_waiting`](SettlePlan::die_waiting), [`remove_waiting`](SettlePlan::remove_waiting) |
//! | waiting, not routed yet | as ready | `confirmed_waiting`, `split`, `hold_split`, `die_waiting`, `remove_waiting` |
//! | waiting, not routed yet | retry, hold without a sink | `wait_again`, `hold_again`: the row stays |
//!
//! A row is meant by its place and its id; one that is not there any more, or is another message's, is passed over.
//!
//! # Order
//! A store writes the steps in the order of the fields: what leaves goes first and what fails next, so that a row which is
//! to be held sees whom it has to wait for. Keys come last, when all rows are where they belong: those `behind` a row that
//! has to wait are held again, then those behind a row that is `gone` become due, then rows that nothing holds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use super::{DeadReason, Lane, Place, RetryState, Room, Settlement, Verdict};

/// The longest error that is kept, in characters.
const LONGEST_ERROR: usize = 2000;

/// A confirmed leg, of which a copy is kept where delivered messages are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeepStep<'a> {
    /// The row.
    pub place: &'a Place,
    /// The sink that confirmed it; empty where all did at once.
    pub leg: &'a str,
}

/// A leg that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitStep<'a> {
    /// The row.
    pub place: &'a Place,
    /// The sink that it waits for.
    pub leg: &'a str,
    /// Why; `None` for one that is held behind another of its key.
    pub state: Option<RetryState>,
    /// For how long; zero for one that is held.
    pub delay: Duration,
    /// Whether this counts as an attempt.
    pub charged: bool,
    /// What went wrong, as it is kept; `None` for one that is held.
    pub error: Option<Cow<'a, str>>,
}

impl WaitStep<'_> {
    /// The word in the database.
    pub fn state_word(&self) -> &'static str {
        self.state.map_or("held", RetryState::as_str)
    }
}

/// A leg that dies.
#[derive(Debug, Clone, PartialEq)]
pub struct DeathStep<'a> {
    /// The row.
    pub place: &'a Place,
    /// The sink; empty when the message could not be routed.
    pub leg: &'a str,
    /// Why.
    pub reason: DeadReason,
    /// In words, as they are kept.
    pub error: Cow<'a, str>,
    /// Whether this counts as an attempt.
    pub charged: bool,
    /// Whether followers of its key wait until an operator acts.
    pub blocks: bool,
}

/// Keys by lane, key and leg, each once, with the lowest `seq` that it was named with. An empty leg stands for all.
pub type PlannedKeys<'a> = BTreeMap<(Lane, &'a str, &'a str), i64>;

/// Each list is a step.
#[derive(Debug, Default)]
pub struct SettlePlan<'a> {
    /// Ready rows that every sink confirmed: they go.
    pub delivered: Vec<&'a Place>,
    /// Confirmed legs of ready rows that have others, too: copies, where delivered messages are kept.
    pub confirmed: Vec<KeepStep<'a>>,
    /// Waiting rows that are done: they go.
    pub done: Vec<&'a Place>,
    /// Confirmed legs of waiting rows that had not been routed and have others, too: copies.
    pub confirmed_waiting: Vec<KeepStep<'a>>,
    /// Waiting rows that wait again.
    pub wait_again: Vec<WaitStep<'a>>,
    /// Legs of ready rows that wait.
    pub wait_ready: Vec<WaitStep<'a>>,
    /// Legs that wait, out of waiting rows that had not been routed.
    pub split: Vec<WaitStep<'a>>,
    /// Legs of ready rows that die.
    pub die_ready: Vec<DeathStep<'a>>,
    /// Waiting rows, or legs of those that had not been routed, that die.
    pub die_waiting: Vec<DeathStep<'a>>,
    /// As `wait_again`, behind others of their key, in the order of `seq`.
    pub hold_again: Vec<WaitStep<'a>>,
    /// As `wait_ready`, behind others of their key, in the order of `seq`.
    pub hold_ready: Vec<WaitStep<'a>>,
    /// As `split`, behind others of their key, in the order of `seq`.
    pub hold_split: Vec<WaitStep<'a>>,
    /// Ready rows whose legs are elsewhere now.
    pub remove_ready: Vec<&'a Place>,
    /// Waiting rows that are elsewhere now.
    pub remove_waiting: Vec<&'a Place>,
    /// Keys of which a row has to wait: so have those behind it.
    pub behind: PlannedKeys<'a>,
    /// Keys of which a waiting row does not stand in the way any more.
    pub gone: PlannedKeys<'a>,
    /// Whether something is due at once.
    pub due: bool,
}

impl<'a> SettlePlan<'a> {
    /// The lanes of settlements with their epochs, to be checked. Should a lane be there with two, what was read under
    /// the older one is void.
    pub fn epochs(settlements: &[Settlement]) -> BTreeMap<Lane, i64> {
        let mut epochs = BTreeMap::new();
        for settlement in settlements {
            let epoch = epochs.entry(settlement.place.lane).or_insert(settlement.epoch);
            *epoch = settlement.epoch.max(*epoch);
        }
        epochs
    }

    /// The steps of these settlements, as far as they are of lanes that are held with that epoch.
    pub fn new(settlements: &'a [Settlement], held: &BTreeMap<Lane, i64>) -> Self {
        let mut plan = Self::default();
        for settlement in settlements {
            if held.get(&settlement.place.lane) != Some(&settlement.epoch) {
                continue;
            }
            match (settlement.place.room, settlement.place.leg.as_deref()) {
                (Room::Ready, _) => plan.ready_row(settlement),
                (Room::Waiting, Some(leg)) if !leg.is_empty() => plan.waiting_row(settlement, leg),
                (Room::Waiting, _) => plan.unrouted_row(settlement),
            }
        }
        for held in [&mut plan.hold_again, &mut plan.hold_ready, &mut plan.hold_split] {
            held.sort_by_key(|step| step.place.seq);
        }
        plan
    }

    /// Whether there is nothing but ready rows that are done: the usual case.
    pub fn only_delivered(&self) -> bool {
        self.done.is_empty()
            && self.wait_again.is_empty()
            && self.hold_again.is_empty()
            && self.remove_ready.is_empty()
            && self.remove_waiting.is_empty()
    }

    /// All rows that are held, with the leg they wait for.
    pub fn held(&self) -> impl Iterator<Item = &WaitStep<'a>> {
        self.hold_again.iter().chain(&self.hold_ready).chain(&self.hold_split)
    }

    fn ready_row(&mut self, settlement: &'a Settlement) {
        let place = &settlement.place;
        if all_delivered(settlement) {
            return self.delivered.push(place);
        }
        for leg in &settlement.legs {
            match &leg.verdict {
                Verdict::Delivered => self.confirmed.push(KeepStep { place, leg: &leg.leg }),
                Verdict::Retry { .. } => {
                    let step = self.wait(settlement, &leg.leg, &leg.verdict);
                    self.wait_ready.extend(step);
                }
                Verdict::Hold => {
                    let step = self.hold(settlement, &leg.leg);
                    self.hold_ready.push(step);
                }
                Verdict::Dead { .. } => self.die_ready.extend(death(place, &leg.leg, &leg.verdict)),
            }
        }
        self.remove_ready.push(place);
    }

    /// A row that waits for one sink is that sink's alone, whatever the verdict calls it.
    fn waiting_row(&mut self, settlement: &'a Settlement, leg: &'a str) {
        let place = &settlement.place;
        let verdict = settlement.legs.first().map_or(&Verdict::Delivered, |leg| &leg.verdict);
        match verdict {
            Verdict::Delivered => self.done.push(place),
            Verdict::Retry { .. } => {
                let step = self.wait(settlement, leg, verdict);
                self.wait_again.extend(step);
            }
            Verdict::Hold => {
                let step = self.hold(settlement, leg);
                self.hold_again.push(step);
            }
            Verdict::Dead { .. } => {
                self.die_waiting.extend(death(place, leg, verdict));
                self.remove_waiting.push(place);
            }
        }
        self.note_key(settlement, leg, has_to_wait(verdict));
    }

    /// A row that was not routed yet falls into its legs. It stood in the way of all of them.
    fn unrouted_row(&mut self, settlement: &'a Settlement) {
        let place = &settlement.place;
        let (is_done, mut stays) = (all_delivered(settlement), false);
        for leg in &settlement.legs {
            let in_place = leg.leg.is_empty();
            match &leg.verdict {
                Verdict::Delivered if is_done => {}
                Verdict::Delivered => self.confirmed_waiting.push(KeepStep { place, leg: &leg.leg }),
                Verdict::Retry { .. } => {
                    let step = self.wait(settlement, &leg.leg, &leg.verdict);
                    if in_place {
                        &mut self.wait_again
                    } else {
                        &mut self.split
                    }
                    .extend(step);
                    stays |= in_place;
                }
                Verdict::Hold => {
                    let step = self.hold(settlement, &leg.leg);
                    if in_place {
                        &mut self.hold_again
                    } else {
                        &mut self.hold_split
                    }
                    .push(step);
                    stays |= in_place;
                }
                Verdict::Dead { .. } => self.die_waiting.extend(death(place, &leg.leg, &leg.verdict)),
            }
            if has_to_wait(&leg.verdict) {
                self.note_key(settlement, &leg.leg, true);
            }
        }
        if stays {
            return;
        }
        if is_done {
            self.done.push(place);
        } else {
            self.remove_waiting.push(place);
        }
        self.note_key(settlement, "", false);
    }

    fn wait(&mut self, settlement: &'a Settlement, leg: &'a str, verdict: &'a Verdict) -> Option<WaitStep<'a>> {
        let Verdict::Retry {
            state,
            delay,
            charged,
            error,
        } = verdict
        else {
            return None;
        };
        self.due |= delay.is_zero();
        Some(WaitStep {
            place: &settlement.place,
            leg,
            state: Some(*state),
            delay: *delay,
            charged: *charged,
            error: Some(kept_error(error)),
        })
    }

    fn hold(&mut self, settlement: &'a Settlement, leg: &'a str) -> WaitStep<'a> {
        // Nothing can hold what has no key.
        self.due |= settlement.key.is_none();
        WaitStep {
            place: &settlement.place,
            leg,
            state: None,
            delay: Duration::ZERO,
            charged: false,
            error: None,
        }
    }

    fn note_key(&mut self, settlement: &'a Settlement, leg: &'a str, has_to_wait: bool) {
        let Some(key) = settlement.key.as_deref() else { return };
        let keys = if has_to_wait { &mut self.behind } else { &mut self.gone };
        let seq = settlement.place.seq;
        let lowest = keys.entry((settlement.place.lane, key, leg)).or_insert(seq);
        *lowest = seq.min(*lowest);
    }
}

fn death<'a>(place: &'a Place, leg: &'a str, verdict: &'a Verdict) -> Option<DeathStep<'a>> {
    let Verdict::Dead {
        reason,
        error,
        charged,
        blocks,
    } = verdict
    else {
        return None;
    };
    Some(DeathStep {
        place,
        leg,
        reason: *reason,
        error: kept_error(error),
        charged: *charged,
        blocks: *blocks,
    })
}

fn all_delivered(settlement: &Settlement) -> bool {
    settlement.legs.iter().all(|leg| leg.verdict == Verdict::Delivered)
}

/// Whether followers of its key wait for a row with this verdict.
fn has_to_wait(verdict: &Verdict) -> bool {
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

/// An error that every database can keep: not longer than people read, and without NUL.
fn kept_error(error: &str) -> Cow<'_, str> {
    if error.contains('\0') {
        return Cow::Owned(error.chars().filter(|c| *c != '\0').take(LONGEST_ERROR).collect());
    }
    let end = error.char_indices().nth(LONGEST_ERROR);
    Cow::Borrowed(&error[..end.map_or(error.len(), |(at, _)| at)])
}

#[cfg(test)]
mod tests;
