//! The steps of settlements. Only this module decides them; stores only execute the steps.
//!
//! | the row is | verdict | becomes |
//! |---|---|---|
//! | ready, every sink confirmed | delivered | [`delivered`](SettlePlan::delivered): the row is removed |
//! | ready | delivered | [`kept_ready`](SettlePlan::kept_ready): a copy with its sinks, if delivered messages are kept |
//! | ready | retry, paused, blocked | [`wait_ready`](SettlePlan::wait_ready), `block_ready`: a waiting row for the delivery |
//! | ready | dead | [`die_ready`](SettlePlan::die_ready): a dead letter for the delivery |
//! | ready, of several deliveries | any | [`remove_ready`](SettlePlan::remove_ready): the row is removed, after all of these |
//! | waiting for a sink | delivered | [`done`](SettlePlan::done): the row is removed; [`kept_waiting`](SettlePlan::kept_waiting) |
//! | waiting for a sink | retry, paused, blocked | [`wait_again`](SettlePlan::wait_again), `block_again`: the row stays |
//! | waiting for a sink | dead | [`die_waiting`](SettlePlan::die_waiting), [`remove_waiting`](SettlePlan::remove_waiting) |
//! | waiting, not routed yet | as ready | `done`, `kept_waiting`, `split`, `block_split`, `die_waiting`, `remove_waiting` |
//! | waiting, not routed yet | retry, paused, blocked without a sink | `wait_again`, `block_again`: the row stays |
//!
//! A row is identified by its row ref, including its id; one that no longer exists, or is another message's, is
//! skipped. So a settlement may be written twice, because the first answer was lost: only a row that waits again still
//! exists, and its attempt is charged once.
//!
//! # Order
//! A store executes the steps in the order of the fields: copies first, as long as the rows are there, then rows that
//! leave, then rows that fail, so that a row
//! that is to be blocked finds the rows that block it. Keys come last, when all rows are in their final table: rows
//! `behind` a row that must wait are blocked again, then rows behind a row that is `gone` become due, then rows that
//! nothing blocks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use super::{DeadReason, Lane, RetryState, RowRef, Settlement, Table, Verdict};

/// The longest error text that is kept, in characters.
const LONGEST_ERROR: usize = 2000;

/// The stored error of a message whose topic is paused. The end of the pause finds messages by this text.
pub const TOPIC_IS_PAUSED: &str = "the topic is paused";

/// How long messages of a paused topic wait unless the pause ends; then they are due now.
const PAUSED_DELAY: Duration = Duration::from_secs(3600);

/// The copy of a row that some or all of its sinks confirmed, where delivered messages are kept: one copy, whatever
/// the number of these sinks, with the attempts and the history of the row.
#[derive(Debug, Clone, PartialEq)]
pub struct KeepStep<'a> {
    /// The row.
    pub row_ref: &'a RowRef,
    /// The sinks that confirmed the message, at least one. A sink that the settlement does not name is empty text.
    pub sinks: Vec<&'a str>,
}

impl KeepStep<'_> {
    /// The sinks as a JSON array.
    pub fn sinks_json(&self) -> String {
        serde_json::Value::from(self.sinks.as_slice()).to_string()
    }
}

/// A delivery that waits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WaitStep<'a> {
    /// The row.
    pub row_ref: &'a RowRef,
    /// The sink that it waits for.
    pub sink: &'a str,
    /// Why the delivery waits; `None` if it is blocked behind another message of its key.
    pub state: Option<RetryState>,
    /// How long the delivery waits; zero if it is blocked.
    pub delay: Duration,
    /// Whether this counts as an attempt. For a waiting row, the attempt is charged only while the row still has the
    /// `attempts` that it had when it was read. Every other step removes its row, and finds none when it is written
    /// twice.
    pub charged: bool,
    /// The row's attempts when it was read.
    pub attempts: u32,
    /// The error text to store; `None` if the delivery is blocked.
    pub error: Option<Cow<'a, str>>,
    /// The name of the pause that the delivery waits for; see [`SettlePlan::end_pauses`].
    pub pause: Option<&'a str>,
}

impl WaitStep<'_> {
    /// The name of the state in the database.
    pub fn state_word(&self) -> &'static str {
        self.state.map_or("blocked", RetryState::as_str)
    }
}

/// A delivery that dies.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeathStep<'a> {
    /// The row.
    pub row_ref: &'a RowRef,
    /// The sink; empty when the message could not be routed.
    pub sink: &'a str,
    /// Why the delivery dies.
    pub reason: DeadReason,
    /// The error text to store.
    pub error: Cow<'a, str>,
    /// Whether this counts as an attempt.
    pub charged: bool,
    /// Whether later messages of the key wait until an operator acts.
    pub blocks: bool,
}

/// Keys by lane, key and sink, each with the lowest `seq` of its settlements. An empty sink means all sinks.
pub type PlannedKeys<'a> = BTreeMap<(Lane, &'a str, &'a str), i64>;

/// The steps of settlements; each list is one step.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SettlePlan<'a> {
    /// Copies of ready rows with confirmed deliveries. The list is empty unless delivered messages are kept.
    pub kept_ready: Vec<KeepStep<'a>>,
    /// Copies of waiting rows with confirmed deliveries. The list is empty unless delivered messages are kept.
    pub kept_waiting: Vec<KeepStep<'a>>,
    /// Ready rows that every sink confirmed: they are removed.
    pub delivered: Vec<&'a RowRef>,
    /// Waiting rows that are done: they are removed.
    pub done: Vec<&'a RowRef>,
    /// Waiting rows that wait again.
    pub wait_again: Vec<WaitStep<'a>>,
    /// Deliveries of ready rows that wait.
    pub wait_ready: Vec<WaitStep<'a>>,
    /// Deliveries of unrouted waiting rows that wait.
    pub split: Vec<WaitStep<'a>>,
    /// Deliveries of ready rows that die.
    pub die_ready: Vec<DeathStep<'a>>,
    /// Waiting rows, or deliveries of unrouted ones, that die.
    pub die_waiting: Vec<DeathStep<'a>>,
    /// Like `wait_again`, but blocked behind others of their key, in the order of `seq`.
    pub block_again: Vec<WaitStep<'a>>,
    /// Like `wait_ready`, but blocked behind others of their key, in the order of `seq`.
    pub block_ready: Vec<WaitStep<'a>>,
    /// Like `split`, but blocked behind others of their key, in the order of `seq`.
    pub block_split: Vec<WaitStep<'a>>,
    /// Ready rows whose deliveries have moved: they are removed.
    pub remove_ready: Vec<&'a RowRef>,
    /// Waiting rows that have moved: they are removed.
    pub remove_waiting: Vec<&'a RowRef>,
    /// Keys with a row that must wait: the rows behind it must wait, too.
    pub behind: PlannedKeys<'a>,
    /// Keys with a waiting row that no longer blocks those behind it.
    pub gone: PlannedKeys<'a>,
    /// Whether something is due now.
    pub due: bool,
    /// Whether delivered messages are kept.
    keeps: bool,
}

impl<'a> SettlePlan<'a> {
    /// The lanes of settlements with their epochs, to be checked. If a lane has two epochs, settlements of the older
    /// one are void.
    pub fn epochs(settlements: &[Settlement]) -> BTreeMap<Lane, i64> {
        let mut epochs = BTreeMap::new();
        for settlement in settlements {
            let epoch = epochs.entry(settlement.row_ref.lane).or_insert(settlement.epoch);
            *epoch = settlement.epoch.max(*epoch);
        }
        epochs
    }

    /// The steps of these settlements; those of lanes that are not held with their epoch are skipped. `keeps` is whether
    /// delivered messages are kept: without it there are no copies.
    pub fn new(settlements: &'a [Settlement], held: &BTreeMap<Lane, i64>, keeps: bool) -> Self {
        let mut plan = Self {
            keeps,
            ..Self::default()
        };
        for settlement in settlements {
            if held.get(&settlement.row_ref.lane) != Some(&settlement.epoch) {
                continue;
            }
            match (settlement.row_ref.table, settlement.row_ref.sink.as_deref()) {
                (Table::Ready, _) => plan.ready_row(settlement),
                (Table::Waiting, Some(sink)) if !sink.is_empty() => plan.waiting_row(settlement, sink),
                (Table::Waiting, _) => plan.unrouted_row(settlement),
            }
        }
        for held in [&mut plan.block_again, &mut plan.block_ready, &mut plan.block_split] {
            held.sort_by_key(|step| step.row_ref.seq);
        }
        plan
    }

    /// Whether there are only delivered ready rows, which is the common case.
    pub fn only_delivered(&self) -> bool {
        self.done.is_empty()
            && self.wait_again.is_empty()
            && self.block_again.is_empty()
            && self.remove_ready.is_empty()
            && self.remove_waiting.is_empty()
    }

    /// Whether messages wait because their topic is paused. Then the store must know which pauses exist, and that none of
    /// them ends before its transaction does.
    pub fn waits_for_pauses(settlements: &[Settlement]) -> bool {
        let mut deliveries = settlements.iter().flat_map(|settlement| &settlement.deliveries);
        deliveries.any(|sink| matches!(sink.verdict, Verdict::Paused { .. }))
    }

    /// Makes messages due now whose pause no longer exists: the operator that ended it did not see them wait.
    pub fn end_pauses(&mut self, lasts: impl Fn(&str) -> bool) {
        let waits = [&mut self.wait_again, &mut self.wait_ready, &mut self.split];
        for step in waits.into_iter().flatten() {
            if step.pause.is_some_and(|pause| !lasts(pause)) {
                step.delay = Duration::ZERO;
                self.due = true;
            }
        }
    }

    /// All deliveries that the plan blocks.
    pub fn held(&self) -> impl Iterator<Item = &WaitStep<'a>> {
        self.block_again
            .iter()
            .chain(&self.block_ready)
            .chain(&self.block_split)
    }

    fn ready_row(&mut self, settlement: &'a Settlement) {
        let row_ref = &settlement.row_ref;
        if self.keeps {
            self.kept_ready.extend(copy(settlement));
        }
        if all_delivered(settlement) {
            return self.delivered.push(row_ref);
        }
        for sink in &settlement.deliveries {
            match &sink.verdict {
                Verdict::Delivered => {}
                Verdict::Retry { .. } | Verdict::Paused { .. } => {
                    let step = self.wait(settlement, &sink.sink, &sink.verdict);
                    self.wait_ready.extend(step);
                }
                Verdict::Blocked => {
                    let step = self.hold(settlement, &sink.sink);
                    self.block_ready.push(step);
                }
                Verdict::Dead { .. } => self.die_ready.extend(death(row_ref, &sink.sink, &sink.verdict)),
            }
        }
        self.remove_ready.push(row_ref);
    }

    /// A row that waits for one sink belongs only to that sink, whatever sink the verdict names.
    fn waiting_row(&mut self, settlement: &'a Settlement, sink: &'a str) {
        let row_ref = &settlement.row_ref;
        let verdict = settlement
            .deliveries
            .first()
            .map_or(&Verdict::Delivered, |sink| &sink.verdict);
        match verdict {
            Verdict::Delivered => {
                self.done.push(row_ref);
                if self.keeps {
                    let sinks = vec![sink];
                    self.kept_waiting.push(KeepStep { row_ref, sinks });
                }
            }
            Verdict::Retry { .. } | Verdict::Paused { .. } => {
                let step = self.wait(settlement, sink, verdict);
                self.wait_again.extend(step);
            }
            Verdict::Blocked => {
                let step = self.hold(settlement, sink);
                self.block_again.push(step);
            }
            Verdict::Dead { .. } => {
                self.die_waiting.extend(death(row_ref, sink, verdict));
                self.remove_waiting.push(row_ref);
            }
        }
        self.note_key(settlement, sink, has_to_wait(verdict));
    }

    /// An unrouted row is split into its deliveries. It blocked all sinks of its key.
    fn unrouted_row(&mut self, settlement: &'a Settlement) {
        let row_ref = &settlement.row_ref;
        let (is_done, mut stays) = (all_delivered(settlement), false);
        if self.keeps {
            self.kept_waiting.extend(copy(settlement));
        }
        for sink in &settlement.deliveries {
            let in_place = sink.sink.is_empty();
            match &sink.verdict {
                Verdict::Delivered => {}
                Verdict::Retry { .. } | Verdict::Paused { .. } => {
                    let step = self.wait(settlement, &sink.sink, &sink.verdict);
                    if in_place {
                        &mut self.wait_again
                    } else {
                        &mut self.split
                    }
                    .extend(step);
                    stays |= in_place;
                }
                Verdict::Blocked => {
                    let step = self.hold(settlement, &sink.sink);
                    if in_place {
                        &mut self.block_again
                    } else {
                        &mut self.block_split
                    }
                    .push(step);
                    stays |= in_place;
                }
                Verdict::Dead { .. } => self.die_waiting.extend(death(row_ref, &sink.sink, &sink.verdict)),
            }
            if has_to_wait(&sink.verdict) {
                self.note_key(settlement, &sink.sink, true);
            }
        }
        if stays {
            return;
        }
        if is_done {
            self.done.push(row_ref);
        } else {
            self.remove_waiting.push(row_ref);
        }
        self.note_key(settlement, "", false);
    }

    fn wait(&mut self, settlement: &'a Settlement, sink: &'a str, verdict: &'a Verdict) -> Option<WaitStep<'a>> {
        let step = WaitStep {
            row_ref: &settlement.row_ref,
            sink,
            state: Some(RetryState::Deferred),
            delay: PAUSED_DELAY,
            charged: false,
            attempts: settlement.attempts,
            error: Some(Cow::Borrowed(TOPIC_IS_PAUSED)),
            pause: None,
        };
        match verdict {
            Verdict::Retry {
                state,
                delay,
                charged,
                error,
            } => {
                self.due |= delay.is_zero();
                Some(WaitStep {
                    state: Some(*state),
                    delay: *delay,
                    charged: *charged,
                    error: Some(kept_error(error)),
                    ..step
                })
            }
            Verdict::Paused { by } => Some(WaitStep {
                pause: Some(by),
                ..step
            }),
            Verdict::Delivered | Verdict::Blocked | Verdict::Dead { .. } => None,
        }
    }

    fn hold(&mut self, settlement: &'a Settlement, sink: &'a str) -> WaitStep<'a> {
        // Without a key, nothing can block it.
        self.due |= settlement.key.is_none();
        WaitStep {
            row_ref: &settlement.row_ref,
            sink,
            state: None,
            delay: Duration::ZERO,
            charged: false,
            attempts: settlement.attempts,
            error: None,
            pause: None,
        }
    }

    fn note_key(&mut self, settlement: &'a Settlement, sink: &'a str, has_to_wait: bool) {
        let Some(key) = settlement.key.as_deref() else { return };
        let keys = if has_to_wait { &mut self.behind } else { &mut self.gone };
        let seq = settlement.row_ref.seq;
        let lowest = keys.entry((settlement.row_ref.lane, key, sink)).or_insert(seq);
        *lowest = seq.min(*lowest);
    }
}

fn death<'a>(row_ref: &'a RowRef, sink: &'a str, verdict: &'a Verdict) -> Option<DeathStep<'a>> {
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
        row_ref,
        sink,
        reason: *reason,
        error: kept_error(error),
        charged: *charged,
        blocks: *blocks,
    })
}

/// The copy of a row that is not for one sink; `None` if no sink confirmed it.
fn copy(settlement: &Settlement) -> Option<KeepStep<'_>> {
    let confirmed = settlement
        .deliveries
        .iter()
        .filter(|delivery| delivery.verdict == Verdict::Delivered);
    let mut sinks: Vec<&str> = confirmed.map(|delivery| &*delivery.sink).collect();
    if settlement.deliveries.is_empty() {
        sinks.push("");
    }
    let row_ref = &settlement.row_ref;
    (!sinks.is_empty()).then_some(KeepStep { row_ref, sinks })
}

fn all_delivered(settlement: &Settlement) -> bool {
    settlement
        .deliveries
        .iter()
        .all(|sink| sink.verdict == Verdict::Delivered)
}

/// Whether followers of its key wait for a row with this verdict.
fn has_to_wait(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Delivered => false,
        Verdict::Retry { state, .. } => match state {
            RetryState::Retry | RetryState::Deferred => true,
            RetryState::Parked => false,
        },
        Verdict::Blocked | Verdict::Paused { .. } => true,
        Verdict::Dead { blocks, .. } => *blocks,
    }
}

/// An error text that every database can store: limited in length, and without NUL.
fn kept_error(error: &str) -> Cow<'_, str> {
    if error.contains('\0') {
        return Cow::Owned(error.chars().filter(|c| *c != '\0').take(LONGEST_ERROR).collect());
    }
    let end = error.char_indices().nth(LONGEST_ERROR);
    Cow::Borrowed(&error[..end.map_or(error.len(), |(at, _)| at)])
}

#[cfg(test)]
mod tests;
