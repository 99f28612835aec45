//! The desk: what is in hand, in which order it may go, and what becomes of it.
//!
//! Pure decisions, no I/O and no waiting. The relay feeds it rows, outcomes and reports of settling; it gives out
//! batches to publish and settlements to write.
//!
//! # Order
//! Of one key, one message at a time is with a sink; its followers in hand queue behind it. When it fails and has to be
//! tried again, its key is *blocked* for that sink: followers go to the waiting table as *held* rows, and so does every
//! follower read later, until settling reports the key freed. A freed key stays blocked while a held row of it is still
//! on its way to the table: that row would be overtaken.
//!
//! Settling a failed row takes its followers in the waiting table back that were due. A read that began before that may
//! still bring them: they are sent back to be held.

mod admit;
mod blocked;
mod decide;
mod forget;
mod gate;
mod lanes;
mod observed;
mod pause;
mod quarantine;
mod refused;
mod settled;
#[cfg(test)]
mod tests;
mod unanswered;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use sendoff::store::{BlockedKey, Lane, LaneGrant, Place, Routes, Row, Settlement, Verdict};
use sendoff::{Delivery, Pattern};
use slotmap::SlotMap;
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::breaker::Breaker;
use crate::hooks::HookList;
use crate::observe::Claimed;
use crate::plan::{Plan, PlannedSink, SinkIndex};
use crate::rate::Rate;
use crate::report::RunReport;
use crate::settings::Settings;

/// How much memory a message takes beside its contents, about.
pub(crate) const ROW_BYTES: usize = 256;

slotmap::new_key_type! {
    /// A message in hand. A ticket may outlive it, and never finds another one in its place.
    pub(crate) struct ItemId;
}

/// One leg of one message in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ticket {
    pub(crate) item: ItemId,
    leg: usize,
}

/// Messages to hand to a sink at once.
pub(crate) struct Batch {
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) deliveries: Vec<Arc<Delivery>>,
}

struct Item {
    delivery: Arc<Delivery>,
    key: Option<Arc<str>>,
    epoch: i64,
    bytes: usize,
    legs: SmallVec<[Leg; 1]>,
    undecided: usize,
    claim: Claimed,
}

impl Item {
    /// No sink has it and no decision was made on it.
    fn is_idle(&self) -> bool {
        self.legs.iter().all(|leg| !leg.with_sink && leg.verdict.is_none())
    }
}

struct Leg {
    name: Arc<str>,
    sink: Option<SinkIndex>,
    with_sink: bool,
    /// Its sink was given it.
    tried: bool,
    /// Counted among what its sink has in hand.
    at_sink: bool,
    verdict: Option<Verdict>,
}

/// Settlements to be written, each with the item that it is about.
#[derive(Default)]
pub(crate) struct Decided {
    pub(crate) items: Vec<ItemId>,
    pub(crate) settlements: Vec<Settlement>,
}

/// A lane that the relay holds.
struct HeldLane {
    epoch: i64,
    crashes: u32,
    suspect: Option<sendoff::store::Suspect>,
    /// Being given back: nothing more of it is taken in.
    leaving: bool,
    in_hand: usize,
    /// Since when it is held.
    gained: Instant,
    /// Keys whose followers have to wait.
    blocked: blocked::BlockedKeys,
}

/// A message of a key that failed.
struct FailedHead {
    seq: i64,
    /// Whether that is in the table.
    written: bool,
}

struct SinkDesk {
    queue: VecDeque<Ticket>,
    breaker: Breaker,
    /// Messages of one key in hand, the first of them with the sink or about to be.
    chains: FxHashMap<Arc<str>, VecDeque<Ticket>>,
    paused: bool,
    /// How many messages in hand are for this sink: queued, behind others of their key, or with it.
    load: usize,
    /// How many batches it could be given at once when a page was last taken in.
    free: usize,
    unanswered: unanswered::Unanswered,
    /// The message of the last probe.
    probe: Option<sendoff::Uuid>,
    rate: Option<Rate>,
}

/// How long messages wait for a sink that has more than its share in hand. They are not looked at before it has room.
const CROWDED_DELAY: Duration = Duration::from_secs(1);

/// How long messages wait that came to a sink too early, where it does not say.
const TOO_EARLY_DELAY: Duration = Duration::from_secs(1);

impl SinkDesk {
    /// For how long, and why, nothing may go to this sink.
    fn shut(&self, now: Instant) -> Option<(Duration, &'static str)> {
        self.paused_for().or_else(|| {
            let until = self.breaker.shut_until(now)?;
            Some((until - now, "the sink is down"))
        })
    }
}

pub(crate) struct Desk {
    plan: Plan,
    hooks: HookList,
    rng: fastrand::Rng,
    crash_limit: u32,
    /// How many messages in hand one sink may have while others are short of room; none if there is only one sink.
    share: Option<usize>,
    window: usize,
    lanes: FxHashMap<Lane, HeldLane>,
    items: SlotMap<ItemId, Item>,
    bytes: usize,
    sinks: Vec<SinkDesk>,
    paused_topics: Vec<Pattern>,
    /// Legs of paused topics of which it is to be seen whether they are still paused.
    doubts: Vec<Ticket>,
    quarantine: quarantine::Quarantine,
    /// Routes of other relays that are not the same.
    foreign: Vec<Routes>,
    to_settle: Decided,
    refused: refused::Refused,
    /// How often the store was asked for blocked keys.
    round: u32,
    /// Rows that are gone since the last read.
    gone: Vec<Place>,
    /// Keys, with lane and sink, of which a message failed since the last read began, or before and not yet written.
    failed: FxHashMap<(Lane, Arc<str>, Arc<str>), FailedHead>,
    gates: FxHashMap<gate::GateKey, gate::Gate>,
    /// Rows that are to be read again.
    forgotten: Vec<Place>,
    /// Their keys, until the next read begins. One that is under way may bring what comes behind them.
    forgotten_keys: FxHashSet<(Lane, Arc<str>)>,
    /// When what is admitted now was read.
    claim: Claimed,
    pub(crate) report: RunReport,
}

impl Desk {
    pub(crate) fn new(plan: Plan, hooks: HookList, rng: fastrand::Rng, settings: &Settings) -> Self {
        let now = Instant::now();
        let desk = |sink: &PlannedSink| SinkDesk {
            queue: VecDeque::new(),
            breaker: Breaker::default(),
            chains: FxHashMap::default(),
            paused: false,
            load: 0,
            free: 0,
            unanswered: unanswered::Unanswered::default(),
            probe: None,
            rate: sink.settings.rate.map(|rate| Rate::new(rate, now)),
        };
        let (window, sinks) = (settings.window, plan.sinks.len());
        Self {
            sinks: plan.sinks.iter().map(desk).collect(),
            share: (sinks > 1).then(|| (window / (2 * sinks)).max(1)),
            window,
            plan,
            hooks,
            rng,
            crash_limit: settings.crash_limit.max(1),
            lanes: FxHashMap::default(),
            items: SlotMap::with_key(),
            bytes: 0,
            paused_topics: Vec::new(),
            doubts: Vec::new(),
            quarantine: quarantine::Quarantine::default(),
            foreign: Vec::new(),
            to_settle: Decided::default(),
            refused: refused::Refused::default(),
            round: 0,
            gone: Vec::new(),
            failed: FxHashMap::default(),
            gates: FxHashMap::default(),
            forgotten: Vec::new(),
            forgotten_keys: FxHashSet::default(),
            claim: Claimed {
                at: now,
                caught_up: None,
            },
            report: RunReport::default(),
        }
    }

    /// How many messages are in hand, without those that only wait for the database to take them.
    pub(crate) fn in_hand(&self) -> usize {
        self.items.len() + self.quarantine.len() - self.refused.len()
    }

    /// Where the row of a message is that is in hand.
    pub(crate) fn place_of(&self, ticket: Ticket) -> Option<&Place> {
        self.items.get(ticket.item).map(|item| &item.delivery.place)
    }

    /// How many bytes of payload are in hand.
    pub(crate) fn bytes_in_hand(&self) -> usize {
        self.bytes
    }

    /// A read begins: it sees all that is written by now.
    pub(crate) fn begin_read(&mut self) {
        self.forgotten_keys.clear();
        let quarantine = &self.quarantine;
        self.failed.retain(|(lane, ..), head| {
            // Rows that are still to be admitted came with earlier reads.
            !head.written || quarantine.has_rows_of(*lane)
        });
    }

    /// Places whose rows are gone since the last call.
    pub(crate) fn take_gone(&mut self) -> Vec<Place> {
        std::mem::take(&mut self.gone)
    }

    /// Decisions to be written.
    pub(crate) fn take_settlements(&mut self, limit: usize) -> Decided {
        if self.to_settle.items.len() <= limit {
            return std::mem::take(&mut self.to_settle);
        }
        Decided {
            items: self.to_settle.items.drain(..limit).collect(),
            settlements: self.to_settle.settlements.drain(..limit).collect(),
        }
    }

    /// Whether decisions wait to be written.
    pub(crate) fn has_settlements(&self) -> bool {
        !self.to_settle.items.is_empty()
    }

    /// The next batch for a sink, if it may have one.
    pub(crate) fn next_batch(&mut self, sink: SinkIndex, now: Instant) -> Option<Batch> {
        let desk = &mut self.sinks[sink];
        let mut limit = if desk.paused {
            0
        } else {
            desk.breaker.allows(now, self.plan.sinks[sink].settings.batch)
        };
        if let Some(rate) = &mut desk.rate
            && limit > 0
            && !desk.queue.is_empty()
        {
            limit = limit.min(rate.allows(now));
        }
        if limit > 0 && desk.breaker.is_probing() {
            self.choose_probe(sink);
        }
        let desk = &mut self.sinks[sink];
        let mut batch = Batch {
            tickets: Vec::new(),
            deliveries: Vec::new(),
        };
        while batch.tickets.len() < limit {
            let Some(ticket) = desk.queue.pop_front() else { break };
            // A ticket outlives its item when a lane was lost.
            let Some(item) = self.items.get_mut(ticket.item) else {
                continue;
            };
            let leg = &mut item.legs[ticket.leg];
            (leg.with_sink, leg.tried) = (true, true);
            batch.tickets.push(ticket);
            batch.deliveries.push(item.delivery.clone());
        }
        if batch.tickets.is_empty() {
            return None;
        }
        desk.breaker.called();
        if let Some(rate) = &mut desk.rate {
            rate.took(batch.tickets.len());
        }
        Some(batch)
    }

    /// Sinks that the waiting table need not be read for.
    pub(crate) fn shut_sinks(&self, now: Instant) -> Vec<String> {
        let names = self
            .plan
            .sinks
            .iter()
            .zip(&self.sinks)
            .filter(|(_, desk)| desk.shut(now).is_some() || self.share.is_some_and(|share| desk.load >= share));
        names.map(|(sink, _)| sink.name.to_string()).collect()
    }

    /// Whether no sink at all can take anything: then reading would only carry rows from table to table.
    pub(crate) fn all_shut(&self, now: Instant) -> bool {
        !self.sinks.is_empty()
            && self
                .sinks
                .iter()
                .all(|desk| desk.paused || desk.breaker.shut_until(now).is_some())
    }

    /// Whether a sink that is down may be probed now, or is being probed.
    pub(crate) fn is_probed(&self, now: Instant) -> bool {
        self.sinks.iter().any(|desk| desk.breaker.is_probed(now))
    }

    /// So many batches are with each sink.
    pub(crate) fn note_batches(&mut self, with_sink: &[usize]) {
        for ((planned, desk), out) in self.plan.sinks.iter().zip(&mut self.sinks).zip(with_sink) {
            desk.free = planned.settings.concurrency.max(1).saturating_sub(*out);
        }
    }

    /// Whether a sink that is slow has so much in hand that there is little room left for the others. One that has much
    /// because much was read, and can be given it at once, is not slow. Its leg would be held up by a sink that is: a message
    /// is written when all its legs are decided.
    fn crowds(&self, sink: SinkIndex) -> bool {
        let desk = &self.sinks[sink];
        let over = self.share.is_some_and(|share| desk.load > share);
        let at_once = desk.free * self.plan.sinks[sink].settings.batch;
        over && self.items.len() >= self.window / 2 && desk.queue.len() >= at_once
    }

    /// The earliest point in time at which a sink may be probed, or may have more.
    pub(crate) fn next_probe(&self, now: Instant) -> Option<Instant> {
        let more = |desk: &SinkDesk| {
            let rate = desk.rate.as_ref().filter(|_| !desk.queue.is_empty())?;
            Some(rate.next())
        };
        let next = |desk: &SinkDesk| desk.breaker.shut_until(now).or_else(|| more(desk));
        self.sinks.iter().filter_map(next).min()
    }

    /// A sink has answered a batch.
    pub(crate) fn answered(&mut self, sink: SinkIndex) {
        let most = self.plan.sinks[sink].settings.batch;
        self.sinks[sink].breaker.answered(most, &mut self.rng);
    }

    /// A batch with a sink was dropped before it answered.
    pub(crate) fn dropped(&mut self, sink: SinkIndex) {
        self.sinks[sink].breaker.dropped();
    }

    pub(crate) fn sink(&self, sink: SinkIndex) -> &crate::plan::PlannedSink {
        &self.plan.sinks[sink]
    }

    pub(crate) fn sink_count(&self) -> usize {
        self.sinks.len()
    }
}
