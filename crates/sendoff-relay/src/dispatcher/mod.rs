//! The dispatcher: holds the messages in flight, and decides what goes to a sink next and what becomes of it.
//!
//! It only decides, without I/O and without waiting. The relay passes in rows, outcomes and reports of settling; the
//! dispatcher returns batches to publish and settlements to write.
//!
//! | file | what it does |
//! |---|---|
//! | `admit` | routes rows that were read, and queues them at their sinks |
//! | `decide` | turns outcomes into verdicts, and applies them to the followers of a key |
//! | `settled`, `refused` | handle written results, and results that the database refuses |
//! | `order/` | keeps the order of a key: what its messages may do next at a sink |
//! | `forget` | drops messages that are read again |
//! | `lanes` | gains, gives back and loses lanes |
//! | `pause` | defers deliveries of paused sinks and topics |
//! | `quarantine` | finds the message that crashes relays |
//! | `unanswered` | finds the message that a sink never answers |
//! | `observed`, `figures` | report to the observer, and to operators |
//!
//! A sink gets one message of a key at a time. When it fails and is tried again later, its followers go to the waiting table
//! as *blocked* rows, and so does every follower that is read later, until settling reports that the key is free. `order/`
//! has the states and the transitions; the other files report events to it.

mod admit;
mod decide;
mod figures;
mod forget;
mod lanes;
mod observed;
mod order;
mod pause;
mod quarantine;
mod refused;
mod settled;
#[cfg(test)]
mod tests;
mod unanswered;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use sendoff::store::{BlockedKey, Lane, LaneGrant, Routes, Row, RowRef, Settlement, Table, Verdict};
use sendoff::{Outgoing, Pattern};
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
use order::{KeyOrder, KeyRef, Member};

/// The approximate memory of a message in addition to its contents.
pub(crate) const ROW_BYTES: usize = 256;

slotmap::new_key_type! {
    /// A message in flight. A ticket may outlive it, and never refers to another message.
    pub(crate) struct EntryId;
}

/// One delivery of one message in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ticket {
    pub(crate) entry: EntryId,
    delivery: usize,
}

/// One batch for a sink.
pub(crate) struct Batch {
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) outgoing: Vec<Arc<Outgoing>>,
}

#[cfg_attr(test, derive(Clone))]
struct Entry {
    outgoing: Arc<Outgoing>,
    key: Option<Arc<str>>,
    epoch: i64,
    bytes: usize,
    deliveries: SmallVec<[Delivery; 1]>,
    undecided: usize,
    claim: Claimed,
}

impl Entry {
    /// No sink has it, and it has no verdict.
    fn is_idle(&self) -> bool {
        self.deliveries
            .iter()
            .all(|delivery| !delivery.with_sink && delivery.verdict.is_none())
    }

    /// Its key at the sink of a delivery.
    fn key_ref(&self, delivery: usize) -> Option<KeyRef> {
        Some(KeyRef {
            lane: self.outgoing.row_ref.lane,
            key: self.key.clone()?,
            sink: self.deliveries[delivery].name.clone(),
        })
    }

    /// It as one of its key.
    fn member(&self, ticket: Ticket) -> Member {
        Member {
            ticket,
            seq: self.outgoing.row_ref.seq,
            is_ready: self.outgoing.row_ref.table == Table::Ready,
        }
    }
}

#[cfg_attr(test, derive(Clone))]
struct Delivery {
    name: Arc<str>,
    sink: Option<SinkIndex>,
    /// It is left to another relay, which has a route for it. Here it only has its place in its key.
    elsewhere: bool,
    with_sink: bool,
    /// It is with its sink.
    tried: bool,
    /// Counted among what its sink has in flight.
    at_sink: bool,
    verdict: Option<Verdict>,
}

/// Settlements to write, each with its entry.
#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Decided {
    pub(crate) entries: Vec<EntryId>,
    pub(crate) settlements: Vec<Settlement>,
}

/// A lane that the relay holds.
#[cfg_attr(test, derive(Clone))]
struct HeldLane {
    epoch: i64,
    crashes: u32,
    quarantined: Option<sendoff::store::Quarantined>,
    /// Being given back: no more rows of it are admitted.
    leaving: bool,
    in_flight: usize,
    /// Since when it is held.
    gained: Instant,
}

#[cfg_attr(test, derive(Clone))]
struct SinkQueue {
    queue: VecDeque<Ticket>,
    breaker: Breaker,
    paused: bool,
    /// How many messages in flight are for this sink: queued, behind others of their key, or with it.
    load: usize,
    /// How many batches it could take when a page was last admitted.
    free: usize,
    unanswered: unanswered::Unanswered,
    /// The message of the last probe.
    probe: Option<sendoff::Uuid>,
    rate: Option<Rate>,
}

/// How long messages wait for a sink that has more than its share in flight. They are not read before it has room.
const CROWDED_DELAY: Duration = Duration::from_secs(1);

/// How long messages wait that reached a sink too early, if the sink gives no delay.
const TOO_EARLY_DELAY: Duration = Duration::from_secs(1);

impl SinkQueue {
    /// How long this sink gets nothing, and why.
    fn shut(&self, now: Instant) -> Option<(Duration, &'static str)> {
        self.paused_for().or_else(|| {
            let until = self.breaker.shut_until(now)?;
            Some((until - now, "the sink is down"))
        })
    }
}

#[cfg_attr(test, derive(Clone))]
pub(crate) struct Dispatcher {
    plan: Plan,
    hooks: HookList,
    rng: fastrand::Rng,
    crash_limit: u32,
    /// How many messages in flight one sink may have while others are short of room; none if there is only one sink.
    share: Option<usize>,
    max_in_flight: usize,
    lanes: FxHashMap<Lane, HeldLane>,
    entries: SlotMap<EntryId, Entry>,
    bytes: usize,
    sinks: Vec<SinkQueue>,
    paused_topics: Vec<Pattern>,
    /// Deliveries of paused topics, until newer news shows whether the pause still lasts.
    doubts: Vec<Ticket>,
    quarantine: quarantine::Quarantine,
    /// Routes of other relays, where they differ.
    foreign: Vec<Routes>,
    /// Lanes with messages that only another relay has a route for.
    stranded: BTreeSet<Lane>,
    to_settle: Decided,
    refused: refused::Refused,
    order: KeyOrder,
    /// Rows that were settled since the last read.
    gone: Vec<RowRef>,
    /// Rows that are to be read again.
    forgotten: Vec<RowRef>,
    /// When the rows that are admitted now were read.
    claim: Claimed,
    /// Whether the store keeps delivered messages: then it needs the names of their sinks.
    pub(crate) keeps_delivered: bool,
    pub(crate) report: RunReport,
}

impl Dispatcher {
    pub(crate) fn new(plan: Plan, hooks: HookList, rng: fastrand::Rng, settings: &Settings) -> Self {
        let now = Instant::now();
        let sink_queue = |sink: &PlannedSink| SinkQueue {
            queue: VecDeque::new(),
            breaker: Breaker::default(),
            paused: false,
            load: 0,
            free: 0,
            unanswered: unanswered::Unanswered::default(),
            probe: None,
            rate: sink.settings.rate.map(|rate| Rate::new(rate, now)),
        };
        let (max_in_flight, sinks) = (settings.max_in_flight, plan.sinks.len());
        Self {
            sinks: plan.sinks.iter().map(sink_queue).collect(),
            share: (sinks > 1).then(|| (max_in_flight / (2 * sinks)).max(1)),
            max_in_flight,
            plan,
            hooks,
            rng,
            crash_limit: settings.crash_limit,
            lanes: FxHashMap::default(),
            entries: SlotMap::with_key(),
            bytes: 0,
            paused_topics: Vec::new(),
            doubts: Vec::new(),
            quarantine: quarantine::Quarantine::default(),
            foreign: Vec::new(),
            stranded: BTreeSet::new(),
            to_settle: Decided::default(),
            refused: refused::Refused::default(),
            order: KeyOrder::default(),
            gone: Vec::new(),
            forgotten: Vec::new(),
            claim: Claimed {
                at: now,
                caught_up: None,
            },
            keeps_delivered: false,
            report: RunReport::default(),
        }
    }

    /// How many messages are in flight, without those that only wait for the database to take them.
    pub(crate) fn in_flight(&self) -> usize {
        self.entries.len() + self.quarantine.len() - self.refused.len()
    }

    /// The row of a message in flight.
    pub(crate) fn row_ref_of(&self, ticket: Ticket) -> Option<&RowRef> {
        self.entries.get(ticket.entry).map(|entry| &entry.outgoing.row_ref)
    }

    /// How many bytes of payload are in flight.
    pub(crate) fn bytes_in_flight(&self) -> usize {
        self.bytes
    }

    /// A read begins: it sees all that is written by now.
    pub(crate) fn begin_read(&mut self) {
        let quarantine = &self.quarantine;
        self.order.read_begins(|lane| quarantine.has_rows_of(lane));
    }

    /// The store is about to be asked which keys are blocked in these lanes, where the dispatcher knows some.
    pub(crate) fn begin_recheck(&mut self) -> Vec<Lane> {
        self.order.begin_recheck()
    }

    /// Forgets the keys of these lanes that the store does not know, except those that changed since it was asked.
    pub(crate) fn recheck(&mut self, lanes: &[Lane], blocked: Vec<BlockedKey>) {
        self.order.recheck(lanes, blocked);
    }

    /// The rows that were settled since the last call.
    pub(crate) fn take_gone(&mut self) -> Vec<RowRef> {
        std::mem::take(&mut self.gone)
    }

    /// Results to be written.
    pub(crate) fn take_settlements(&mut self, limit: usize) -> Decided {
        self.hold_back();
        if self.to_settle.entries.len() <= limit {
            return std::mem::take(&mut self.to_settle);
        }
        Decided {
            entries: self.to_settle.entries.drain(..limit).collect(),
            settlements: self.to_settle.settlements.drain(..limit).collect(),
        }
    }

    /// Whether results wait to be written.
    pub(crate) fn has_settlements(&self) -> bool {
        !self.to_settle.entries.is_empty()
    }

    /// The next batch for a sink, if it may have one.
    pub(crate) fn next_batch(&mut self, sink: SinkIndex, now: Instant) -> Option<Batch> {
        let sink_queue = &mut self.sinks[sink];
        let mut limit = if sink_queue.paused {
            0
        } else {
            sink_queue.breaker.allows(now, self.plan.sinks[sink].settings.batch)
        };
        if let Some(rate) = &mut sink_queue.rate
            && limit > 0
            && !sink_queue.queue.is_empty()
        {
            limit = limit.min(rate.allows(now));
        }
        if limit > 0 && sink_queue.breaker.is_probing() {
            self.choose_probe(sink);
        }
        let sink_queue = &mut self.sinks[sink];
        let mut batch = Batch {
            tickets: Vec::new(),
            outgoing: Vec::new(),
        };
        while batch.tickets.len() < limit {
            let Some(ticket) = sink_queue.queue.pop_front() else {
                break;
            };
            // A ticket outlives its entry when a lane was lost.
            let Some(entry) = self.entries.get_mut(ticket.entry) else {
                continue;
            };
            let delivery = &mut entry.deliveries[ticket.delivery];
            (delivery.with_sink, delivery.tried) = (true, true);
            batch.tickets.push(ticket);
            batch.outgoing.push(entry.outgoing.clone());
        }
        if batch.tickets.is_empty() {
            return None;
        }
        sink_queue.breaker.called();
        if let Some(rate) = &mut sink_queue.rate {
            rate.took(batch.tickets.len());
        }
        Some(batch)
    }

    /// Sinks whose rows in the waiting table need not be read.
    pub(crate) fn shut_sinks(&self, now: Instant) -> Vec<String> {
        let names = self.plan.sinks.iter().zip(&self.sinks).filter(|(_, sink_queue)| {
            sink_queue.shut(now).is_some() || self.share.is_some_and(|share| sink_queue.load >= share)
        });
        names.map(|(sink, _)| sink.name.to_string()).collect()
    }

    /// Whether no sink can take anything: then a read would only move rows from table to table.
    pub(crate) fn all_shut(&self, now: Instant) -> bool {
        !self.sinks.is_empty()
            && self
                .sinks
                .iter()
                .all(|sink_queue| sink_queue.paused || sink_queue.breaker.shut_until(now).is_some())
    }

    /// Whether a sink that is down may be probed now, or is being probed.
    pub(crate) fn is_probed(&self, now: Instant) -> bool {
        self.sinks.iter().any(|sink_queue| sink_queue.breaker.is_probed(now))
    }

    /// Sets how many batches are with each sink.
    pub(crate) fn note_batches(&mut self, with_sink: &[usize]) {
        for ((planned, sink_queue), out) in self.plan.sinks.iter().zip(&mut self.sinks).zip(with_sink) {
            sink_queue.free = planned.settings.concurrency.max(1).saturating_sub(*out);
        }
    }

    /// Whether a slow sink has so much in flight that there is little room for the others. A sink that has much in flight
    /// only because much was read, and can take it now, is not slow. Its deliveries would wait for a sink that is: a message
    /// is written when all its deliveries are decided.
    fn crowds(&self, sink: SinkIndex) -> bool {
        let sink_queue = &self.sinks[sink];
        let over = self.share.is_some_and(|share| sink_queue.load > share);
        let at_once = sink_queue.free * self.plan.sinks[sink].settings.batch;
        over && self.entries.len() >= self.max_in_flight / 2 && sink_queue.queue.len() >= at_once
    }

    /// The earliest point in time at which a sink may be probed, or may have more.
    pub(crate) fn next_probe(&self, now: Instant) -> Option<Instant> {
        let more = |sink_queue: &SinkQueue| {
            let rate = sink_queue.rate.as_ref().filter(|_| !sink_queue.queue.is_empty())?;
            Some(rate.next())
        };
        let next = |sink_queue: &SinkQueue| sink_queue.breaker.shut_until(now).or_else(|| more(sink_queue));
        self.sinks.iter().filter_map(next).min()
    }

    /// A sink has answered a batch.
    pub(crate) fn answered(&mut self, sink: SinkIndex) {
        let most = self.plan.sinks[sink].settings.batch;
        self.sinks[sink].breaker.answered(most, &mut self.rng);
    }

    /// A batch with a sink was dropped before the sink answered.
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
