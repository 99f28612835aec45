//! The rules, checked while a simulation runs.

use std::sync::Arc;
use std::time::Duration;

use sendoff::Outgoing;
use sendoff::store::{DeadReason, OwnerId, SettleReport, Settlement, Verdict};
use tokio::time::Instant;

use super::SINKS;
use super::ledger::{Death, Fate, MessageNo};
use super::message::{SOMEWHERE, Temper};
use super::plan::Step;
use super::process::{ATTEMPTS, Process, SINK_TIMEOUT, Seat};
use super::verdict::Rule;
use super::world::{State, WithSink, World};

/// What was true of a settlement before it was carried out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    /// Its relay held the lane.
    held: bool,
    /// Its row was there.
    there: bool,
    /// How many attempts it had.
    attempts: u32,
}

impl World {
    /// The process was told that it has a lease until then.
    pub(super) fn leased(&self, seat: Seat, until: Instant) {
        let mut state = self.state();
        let process = &mut state.processes[seat.slot];
        process.leased_until = Some(process.leased_until.map_or(until, |known| known.max(until)));
    }

    /// The process was told that these relays live.
    pub(super) fn sees(&self, seat: Seat, owners: &[OwnerId]) {
        let mut state = self.state();
        let knows = state.processes[0]
            .owners
            .last()
            .is_some_and(|owner| owners.contains(owner));
        if seat.slot > 0 && self.plan.routes_differ && !knows {
            state.no_route = Some(Instant::now());
        }
    }

    /// Everybody who has a lease.
    pub(super) fn leased_owners(&self) -> Vec<OwnerId> {
        let registered = self.store.registered().into_iter();
        registered.filter(|owner| self.store.is_leased(*owner)).collect()
    }

    /// Relays whose time had not come were evicted, unless they are all there.
    pub(super) fn are_registered(&self, leased: &[OwnerId]) {
        let registered = self.store.registered();
        if let Some(evicted) = leased.iter().find(|owner| !registered.contains(owner)) {
            self.broken(Rule::Evicted, format!("{evicted} was evicted, and has a lease"));
        }
    }

    /// The process was told what is paused.
    pub(super) fn knows_paused(&self, seat: Seat, paused: &[(String, String)]) {
        let mut state = self.state();
        let process = &mut state.processes[seat.slot];
        if process.paused != paused {
            process.paused = paused.to_vec();
            process.paused_since = Instant::now();
        }
    }

    /// A process hands messages to a sink. Returns the number of the call, and the messages.
    pub(super) fn handed_over(&self, seat: Seat, sink: usize, batch: &[Arc<Outgoing>]) -> (u64, Vec<MessageNo>) {
        let (at, now, clock) = (self.ms(), Instant::now(), self.store.now());
        let mut state = self.state();
        state.publications += batch.len() as u64;
        let batch_size = self.plan.batch as u32;
        let disturbed = state.is_disturbed();
        let mut messages = Vec::with_capacity(batch.len());
        let mut found = Vec::new();
        for outgoing in batch {
            let Some(n) = state.ledger.find(outgoing.id) else {
                found.push((Rule::NoPhantom, format!("{} was never emitted", outgoing.id)));
                continue;
            };
            messages.push(n);
            let name = state.ledger.name(n);
            let note = &mut state.ledger.notes[n];
            let delivery = &mut note.deliveries[sink];
            delivery.tries += 1;
            if matches!(note.fate, Fate::Open | Fate::Never) {
                found.push((Rule::NoPhantom, format!("{name} was never committed")));
            }
            if delivery.settled && !disturbed {
                found.push((Rule::SentAgain, format!("{name} was settled at {}", SINKS[sink])));
            }
            let early = note.available.is_some_and(|available| clock < available) && !note.retried;
            if early && !self.plan.has(|step| matches!(step, Step::SetClock(_))) {
                found.push((Rule::TooEarly, name.clone()));
            }
            let delivery = &state.ledger.notes[n].deliveries[sink];
            let same_call = delivery
                .panicked
                .is_some_and(|at| at.elapsed() < SINK_TIMEOUT * batch_size);
            if !same_call && let Some(what) = self.is_paused(&state, seat, sink, &outgoing.topic) {
                found.push((
                    Rule::Paused,
                    format!("{name} is sent, although {seat} knows that {what} is paused"),
                ));
            }
            if !disturbed && let Some(other) = state.already_there(n, sink) {
                let other = state.ledger.name(other);
                found.push((
                    Rule::OneAtATime,
                    format!("{name} is sent to {} while {other} is there", SINKS[sink]),
                ));
            }
        }
        let keys: Vec<&String> = batch.iter().filter_map(|outgoing| outgoing.key.as_ref()).collect();
        if (1..keys.len()).any(|at| keys[..at].contains(&keys[at])) {
            found.push((Rule::OneAtATime, format!("two of one key in a batch: {keys:?}")));
        }
        let lease = state.processes[seat.slot].leased_until;
        if lease.is_none_or(|lease| now > lease) {
            found.push((Rule::Leased, format!("{seat} hands over after its lease")));
        }
        state.note(at, || {
            let names = messages.iter().map(|n| format!("#{n}"));
            format!("{seat} → {}: {}", SINKS[sink], names.collect::<Vec<_>>().join(" "))
        });
        for (rule, what) in found {
            state.broken(at, rule, what);
        }
        state.calls += 1;
        let call = state.calls;
        let with_sink = WithSink {
            sink,
            messages: messages.clone(),
        };
        state.with_sink.insert(call, with_sink);
        (call, messages)
    }

    fn is_paused(&self, state: &State, seat: Seat, sink: usize, topic: &str) -> Option<String> {
        let process = &state.processes[seat.slot];
        // An answer has to be looked at first, by a process that may have been standing still.
        let since = process.paused_since.max(process.frozen_until);
        let paused = Some(&process.paused).filter(|_| since.elapsed() > Duration::from_millis(100))?;
        let fits = |(kind, name): &&(String, String)| match kind.as_str() {
            "sink" => name == SINKS[sink],
            _ => {
                let (start, end) = name.split_once('*').unwrap_or((name, ""));
                topic.starts_with(start) && topic.ends_with(end) && (name.contains('*') || topic == name)
            }
        };
        paused.iter().find(fits).map(|(_, name)| name.clone())
    }

    /// A message is at the far side.
    pub(super) fn arrived(&self, n: MessageNo, sink: usize) {
        let (at, clock) = (self.ms(), self.store.now());
        let mut state = self.state();
        state.note(at, || format!("{} has #{n}", SINKS[sink]));
        state.progress = Instant::now();
        let first = state.ledger.notes[n].deliveries[sink].arrived == 0;
        let overtaken = state
            .ledger
            .overtaken_by(n, sink, clock, state.may_have_no_route())
            .filter(|_| first && !state.is_disturbed());
        state.ledger.notes[n].deliveries[sink].arrived += 1;
        if let Some(other) = overtaken {
            let (name, other) = (state.ledger.name(n), state.ledger.name(other));
            state.broken(at, Rule::Order, format!("{name} is at {} before {other}", SINKS[sink]));
        }
    }

    pub(super) fn before_settling(&self, owner: OwnerId, settlements: &[Settlement]) -> Vec<Before> {
        let before = |settlement: &Settlement| Before {
            held: self.store.holds(owner, settlement.row_ref.lane, settlement.epoch),
            there: self.store.has_row(&settlement.row_ref),
            attempts: self.store.attempts(&settlement.row_ref, None).unwrap_or_default(),
        };
        settlements.iter().map(before).collect()
    }

    /// Settlements were carried out.
    pub(super) fn settled(&self, seat: Seat, settlements: &[Settlement], before: &[Before], report: &SettleReport) {
        let at = self.ms();
        let clock = self.store.now();
        let mut state = self.state();
        for (settlement, before) in settlements.iter().zip(before) {
            let lane = settlement.row_ref.lane;
            let newer = |other: &Settlement| other.row_ref.lane == lane && other.epoch > settlement.epoch;
            if report.lost.contains(&lane) || (!before.held && settlements.iter().any(newer)) {
                continue;
            }
            let Some(n) = state.ledger.find(settlement.row_ref.id.uuid()) else {
                continue;
            };
            if !before.held {
                let what = format!(
                    "{seat} settled {} of lane {lane}, which it does not hold",
                    state.ledger.name(n)
                );
                state.broken(at, Rule::Fenced, what);
            }
            if !before.there {
                continue;
            }
            state.progress = Instant::now();
            state.note(at, || {
                format!(
                    "{seat} settles #{n} {:?} {:?}",
                    settlement.row_ref.sink, settlement.deliveries
                )
            });
            if settlement.deliveries.is_empty() {
                let own = settlement.row_ref.sink.as_deref().and_then(sink_named);
                let all: Vec<usize> = own.map_or_else(|| state.ledger.notes[n].draft.sinks().to_vec(), |one| vec![one]);
                all.iter().for_each(|sink| state.settled_as_delivered(at, n, *sink));
            }
            for delivery in &settlement.deliveries {
                let sink = sink_named(&delivery.sink);
                match (&delivery.verdict, sink) {
                    (Verdict::Delivered, Some(sink)) => state.settled_as_delivered(at, n, sink),
                    (Verdict::Retry { .. }, Some(sink)) => {
                        let attempts = self.store.attempts(&settlement.row_ref, Some(&delivery.sink));
                        let charges = attempts.unwrap_or_default().saturating_sub(before.attempts);
                        state.charged(at, n, sink, charges);
                    }
                    (Verdict::Dead { reason, blocks, .. }, sink) => {
                        let death = Death {
                            reason: *reason,
                            blocks: *blocks,
                        };
                        let cause = self.has_cause(&state, n, sink, death, usize::from(lane), clock);
                        state.died(at, n, sink, death, cause);
                    }
                    (Verdict::Retry { .. } | Verdict::Paused { .. } | Verdict::Blocked | Verdict::Delivered, _) => {}
                }
            }
        }
    }

    /// Why there is no cause for this death, if there is none.
    fn has_cause(
        &self,
        state: &State,
        n: MessageNo,
        sink: Option<usize>,
        death: Death,
        lane: usize,
        clock: std::time::SystemTime,
    ) -> Result<(), String> {
        let note = &state.ledger.notes[n];
        let delivery = sink.map(|sink| &note.deliveries[sink]);
        let answers = delivery.map_or(0, |delivery| delivery.answers);
        let blocks = note.draft.key.is_some() && note.draft.topic.starts_with("block");
        match death.reason {
            DeadReason::Permanent if note.draft.temper != Temper::Refused => Err("the sink did not refuse it".into()),
            DeadReason::Permanent | DeadReason::Exhausted if blocks && !death.blocks => {
                Err("it should hold up its key".into())
            }
            DeadReason::Exhausted => {
                let limit = note.draft.max_attempts.map_or(ATTEMPTS, u32::from);
                let used_up = answers >= limit || state.failed_over;
                used_up.then_some(()).ok_or(format!("{answers} of {limit} attempts"))
            }
            DeadReason::Expired => {
                // A read that saw a clock which was set back since may be right.
                let ahead = if self.plan.has(|step| matches!(step, Step::SetClock(_))) {
                    10
                } else {
                    0
                };
                let by = clock + Duration::from_secs(ahead);
                let expired = note.expires.is_some_and(|expires| expires <= by);
                expired.then_some(()).ok_or("it has not expired".into())
            }
            DeadReason::Unroutable => {
                let known = note.draft.topic == SOMEWHERE && self.is_known(&state.processes[0]);
                let nowhere = note.draft.sinks().is_empty() || (note.draft.topic == SOMEWHERE && !known);
                nowhere.then_some(()).ok_or("a relay knows its route".into())
            }
            DeadReason::Unreadable => {
                let garbled = note.draft.temper == Temper::Garbled;
                garbled.then_some(()).ok_or("its row can be read".into())
            }
            DeadReason::Crashed => {
                // Leases of before a failover may be counted twice.
                let limit = self.plan.crash_limit;
                let enough = if state.failed_over { 1 } else { limit };
                // One that did nothing may be with relays that die for other reasons: as often as it takes to come into
                // quarantine, and as often again. Leases that were lost on the way count as well, for a while.
                let only_killed = !self.plan.has(|step| !step.is_calm() && !matches!(step, Step::Kill(..)));
                let by_chance = if only_killed && self.plan.store_trouble == 0 {
                    2 * limit
                } else {
                    enough
                };
                let guilty = note.kills >= enough || state.kills[lane] >= by_chance;
                let kills = (note.kills, state.kills[lane]);
                guilty
                    .then_some(())
                    .ok_or(format!("it killed {} processes, its lane saw {}", kills.0, kills.1))
            }
            DeadReason::Permanent => Ok(()),
            other => Err(format!("the rules do not know the reason {}", other.as_str())),
        }
    }
}

impl World {
    /// Whether all relays that live know this one: it has a lease, and has had it for longer than a call of theirs may take.
    fn is_known(&self, process: &Process) -> bool {
        let calm = self.plan.store_trouble == 0 && !self.plan.has(|step| !step.is_calm());
        let long_enough = Duration::from_millis(if calm { 1_500 } else { 15_000 });
        let leased = process.owners.last().is_some_and(|owner| self.store.is_leased(*owner));
        process.running && leased && process.owned_since.elapsed() > long_enough
    }
}

impl State {
    /// A message that must not be at this sink while this one is.
    fn already_there(&self, n: MessageNo, sink: usize) -> Option<MessageNo> {
        let key = &self.ledger.notes[n].draft.key;
        let there = self.with_sink.values().filter(|call| call.sink == sink);
        let mut messages = there.flat_map(|call| call.messages.iter().copied());
        messages.find(|other| *other == n || (key.is_some() && self.ledger.notes[*other].draft.key == *key))
    }

    fn settled_as_delivered(&mut self, at: u64, n: MessageNo, sink: usize) {
        let delivery = &mut self.ledger.notes[n].deliveries[sink];
        delivery.settled = true;
        if delivery.confirmed == 0 {
            let what = format!("{} was not confirmed by {}", self.ledger.name(n), SINKS[sink]);
            self.broken(at, Rule::Confirmed, what);
        }
    }

    fn charged(&mut self, at: u64, n: MessageNo, sink: usize, charges: u32) {
        let delivery = &mut self.ledger.notes[n].deliveries[sink];
        delivery.charges += charges;
        // A failover takes back what was settled, and a relay whose answer was lost settles it again.
        if delivery.charges > delivery.answers && !self.failed_over {
            let what = format!(
                "{} at {}: {} charges, {} answers",
                n, SINKS[sink], delivery.charges, delivery.answers
            );
            self.broken(at, Rule::Charged, what);
        }
    }

    fn died(&mut self, at: u64, n: MessageNo, sink: Option<usize>, death: Death, cause: Result<(), String>) {
        let note = &mut self.ledger.notes[n];
        match sink {
            Some(sink) => note.deliveries[sink].dead = Some(death),
            None => note.unrouted = Some(death),
        }
        if let Err(why) = cause {
            let what = format!(
                "{} is dead as {}, but {why}",
                self.ledger.name(n),
                death.reason.as_str()
            );
            self.broken(at, Rule::Cause, what);
        }
    }
}

/// The number of a sink; none for what is not routed.
pub(super) fn sink_named(name: &str) -> Option<usize> {
    SINKS.iter().position(|sink| *sink == name)
}
