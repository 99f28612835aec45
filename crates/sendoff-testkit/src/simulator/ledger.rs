//! What is known of every message, by those who cannot be wrong: its producer and the far sides of its sinks.

use std::collections::BTreeMap;
use std::time::SystemTime;

use sendoff::Uuid;
use sendoff::store::DeadReason;
use tokio::time::Instant;

use super::message::{Draft, SINKS, SOMEWHERE, Temper};

/// A message, by its place in the ledger.
pub(super) type MessageNo = usize;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Open,
    Committed,
    /// Rolled back, or lost by a failover before it ended.
    Never,
    /// Committed, and lost by a failover.
    LostByFailover,
}

/// A dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Death {
    pub(super) reason: DeadReason,
    pub(super) blocks: bool,
}

/// What happened to a message at one sink.
#[derive(Debug, Clone, Default)]
pub(super) struct Delivery {
    /// How often it arrived.
    pub(super) arrived: u32,
    /// How often the sink said so.
    pub(super) confirmed: u32,
    /// Answers that may be charged, since it was last brought back.
    pub(super) answers: u32,
    /// Attempts that were charged since then.
    pub(super) charges: u32,
    /// How often it was handed over.
    pub(super) tries: u32,
    /// When the sink last panicked with it: then the same call hands it over again, alone.
    pub(super) panicked: Option<Instant>,
    /// It was settled as delivered.
    pub(super) settled: bool,
    pub(super) dead: Option<Death>,
    /// An operator has deleted it.
    pub(super) discarded: bool,
    /// An operator has brought it back from the dead letters.
    pub(super) brought_back: bool,
    /// Others of its key may pass it from now on.
    pub(super) passed: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Note {
    pub(super) id: Uuid,
    pub(super) draft: Draft,
    pub(super) fate: Fate,
    /// When its transaction began and ended, in steps of the whole history.
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) available: Option<SystemTime>,
    pub(super) expires: Option<SystemTime>,
    /// How many processes it killed.
    pub(super) kills: u32,
    /// An operator may have made it due early.
    pub(super) retried: bool,
    pub(super) deliveries: [Delivery; SINKS.len()],
    /// It died before it was routed.
    pub(super) unrouted: Option<Death>,
}

impl Note {
    /// Whether it has to be delivered.
    pub(super) fn is_due(&self) -> bool {
        self.fate == Fate::Committed
    }

    /// Whether its place in the order is before another's.
    fn is_before(&self, other: &Self, row_refs: (MessageNo, MessageNo)) -> bool {
        self.ended < other.began || (self.began == other.began && row_refs.0 < row_refs.1)
    }

    /// Whether others of its key may be at this sink before it.
    fn may_be_passed(&self, sink: usize, clock: SystemTime) -> bool {
        let delivery = &self.deliveries[sink];
        let does_not_block = |death: &Option<Death>| death.is_some_and(|death| !death.blocks);
        self.draft.lets_others_pass()
            || self.expires.is_some_and(|expires| expires <= clock)
            || delivery.passed
            || delivery.discarded
            || does_not_block(&delivery.dead)
            || does_not_block(&self.unrouted)
    }
}

#[derive(Debug, Default, Clone)]
pub(super) struct Ledger {
    pub(super) notes: Vec<Note>,
    by_id: BTreeMap<Uuid, MessageNo>,
    step: u64,
}

impl Ledger {
    /// A step of the history: when something began or ended.
    pub(super) fn step(&mut self) -> u64 {
        self.step += 1;
        self.step
    }

    pub(super) fn emitted(&mut self, note: Note) {
        self.by_id.insert(note.id, self.notes.len());
        self.notes.push(note);
    }

    /// The transaction that began then is over.
    pub(super) fn ended(&mut self, began: u64, fate: Fate) {
        let step = self.step();
        let open = self.notes.iter_mut().filter(|note| note.began == began);
        for note in open.filter(|note| note.fate == Fate::Open) {
            (note.fate, note.ended) = (fate, step);
        }
    }

    pub(super) fn find(&self, id: Uuid) -> Option<MessageNo> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn get(&mut self, id: Uuid) -> Option<(MessageNo, &mut Note)> {
        let n = self.find(id)?;
        Some((n, &mut self.notes[n]))
    }

    /// One that should have arrived at this sink before this message does.
    ///
    /// A scheduled message takes its place when it is due, and one that an operator brought back when that was done: both may
    /// come before others that were there, and have not been read.
    /// `no_route`: what only one relay has a route for may be taken for unroutable.
    pub(super) fn overtaken_by(
        &self,
        n: MessageNo,
        sink: usize,
        clock: SystemTime,
        no_route: bool,
    ) -> Option<MessageNo> {
        let note = &self.notes[n];
        if note.draft.key.is_none() || note.draft.delay.is_some() || note.deliveries[sink].brought_back {
            return None;
        }
        let earlier = self.notes.iter().enumerate().filter(|(_, other)| {
            other.draft.key == note.draft.key && other.is_due() && other.draft.sinks().contains(&sink)
        });
        let mut overtaken = earlier.filter(|(at, other)| {
            *at != n
                && other.deliveries[sink].arrived == 0
                && other.is_before(note, (*at, n))
                && !other.may_be_passed(sink, clock)
                && !(no_route && other.draft.topic == SOMEWHERE)
        });
        overtaken.next().map(|(at, _)| at)
    }

    /// The database has lost everything since `then`: what was committed, and what became of messages.
    pub(super) fn fail_over(&mut self, then: &Self) {
        for (n, note) in self.notes.iter_mut().enumerate() {
            let before = then.notes.get(n);
            match before.filter(|before| before.fate == Fate::Committed) {
                Some(before) => {
                    note.unrouted = before.unrouted;
                    for (delivery, before) in note.deliveries.iter_mut().zip(&before.deliveries) {
                        // What was excused once stays excused.
                        delivery.passed |= delivery.dead.is_some() || delivery.discarded;
                        delivery.dead = before.dead;
                        delivery.discarded = before.discarded;
                        delivery.settled = before.settled;
                    }
                }
                None if note.fate == Fate::Committed => note.fate = Fate::LostByFailover,
                None if note.fate == Fate::Open => note.fate = Fate::Never,
                None => {}
            }
        }
    }

    /// A message in a few words.
    pub(super) fn name(&self, n: MessageNo) -> String {
        let note = &self.notes[n];
        let key = note.draft.key.as_deref().unwrap_or("-");
        let temper = match note.draft.temper {
            Temper::Usual => String::new(),
            other => format!(" {other:?}"),
        };
        format!("#{n} ({} {key}{temper})", note.draft.topic)
    }
}
