//! The tables: one a state of a message, and those about relays.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sendoff::Uuid;
use sendoff::store::{AuditView, DeadReason, Lane, OwnerId, PauseView, Quarantined, RelayCard, RetryState};

use super::Lanes;
use super::clock::{Micros, span};
use super::content::Content;
use super::dedup::Dedup;

/// The empty delivery: not routed yet.
pub(super) const UNROUTED: &str = "";

pub(super) type ReadyAt = (Lane, i64);
/// A delivery of a message: two messages may have one number, after numbers were set back.
pub(super) type DeliveryAt = (Lane, i64, Arc<str>, Uuid);

#[derive(Clone)]
pub(super) struct Tables {
    /// Which history this is: a number that no other one has.
    pub(super) history: u64,
    pub(super) next_seq: i64,
    pub(super) ready: BTreeMap<ReadyAt, Arc<Content>>,
    pub(super) waiting: BTreeMap<DeliveryAt, Waiting>,
    pub(super) dead: BTreeMap<DeliveryAt, Dead>,
    pub(super) delivered: Vec<Kept>,
    pub(super) relays: BTreeMap<OwnerId, Lease>,
    /// What people call them.
    pub(super) cards: BTreeMap<OwnerId, RelayCard>,
    /// What they wrote about themselves, by sink, with the time.
    pub(super) figures: BTreeMap<OwnerId, BTreeMap<String, (Micros, String)>>,
    pub(super) lanes: Vec<LaneRow>,
    pub(super) dedup: Dedup,
    pub(super) paused: BTreeMap<(String, String), PauseView>,
    pub(super) audits: Vec<AuditView>,
}

impl Tables {
    pub(super) fn new(dedup_window: Duration, lanes: Lanes) -> Self {
        Self {
            history: 0,
            next_seq: 1,
            ready: BTreeMap::new(),
            waiting: BTreeMap::new(),
            dead: BTreeMap::new(),
            delivered: Vec::new(),
            relays: BTreeMap::new(),
            cards: BTreeMap::new(),
            figures: BTreeMap::new(),
            lanes: vec![LaneRow::default(); usize::from(lanes.count())],
            dedup: Dedup {
                window: span(dedup_window),
                held: HashMap::new(),
                taken: HashMap::new(),
            },
            paused: BTreeMap::new(),
            audits: Vec::new(),
        }
    }

    /// A copy of what settling changes.
    pub(super) fn messages(&self) -> Messages {
        Messages {
            ready: self.ready.clone(),
            waiting: self.waiting.clone(),
            dead: self.dead.clone(),
            delivered: self.delivered.clone(),
        }
    }

    /// Goes back to that copy.
    pub(super) fn restore(&mut self, messages: Messages) {
        self.ready = messages.ready;
        self.waiting = messages.waiting;
        self.dead = messages.dead;
        self.delivered = messages.delivered;
    }

    /// The waiting rows of a lane, in the order of `seq`.
    pub(super) fn waiting_in(&self, lane: Lane) -> impl Iterator<Item = (&DeliveryAt, &Waiting)> {
        self.waiting.range(sink_range(lane))
    }

    pub(super) fn waiting_in_mut(&mut self, lane: Lane) -> impl Iterator<Item = (&DeliveryAt, &mut Waiting)> {
        self.waiting.range_mut(sink_range(lane))
    }

    pub(super) fn dead_in(&self, lane: Lane) -> impl Iterator<Item = (&DeliveryAt, &Dead)> {
        self.dead.range(sink_range(lane))
    }
}

/// Where every message is.
pub(super) struct Messages {
    ready: BTreeMap<ReadyAt, Arc<Content>>,
    waiting: BTreeMap<DeliveryAt, Waiting>,
    dead: BTreeMap<DeliveryAt, Dead>,
    delivered: Vec<Kept>,
}

fn sink_range(lane: Lane) -> std::ops::Range<DeliveryAt> {
    (lane, i64::MIN, UNROUTED.into(), Uuid::nil())..(lane + 1, i64::MIN, UNROUTED.into(), Uuid::nil())
}

/// Why a row waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitState {
    Scheduled,
    Blocked,
    Tried(RetryState),
}

impl WaitState {
    /// Whether followers of its key wait for it.
    pub(super) fn blocks(self) -> bool {
        match self {
            Self::Blocked | Self::Tried(RetryState::Retry | RetryState::Deferred) => true,
            Self::Scheduled | Self::Tried(RetryState::Parked) => false,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Blocked => "blocked",
            Self::Tried(state) => state.as_str(),
        }
    }
}

/// One attempt, or one change of its error.
#[derive(Debug, Clone)]
pub(super) struct Tried {
    pub(super) at: Micros,
    pub(super) sink: Arc<str>,
    pub(super) error: String,
}

#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) content: Arc<Content>,
    pub(super) attempts: u32,
    pub(super) state: WaitState,
    /// `None`: held until the head of its key is gone.
    pub(super) due_at: Option<Micros>,
    pub(super) last_error: Option<String>,
    pub(super) history: Vec<Tried>,
}

#[derive(Debug, Clone)]
pub(super) struct Dead {
    pub(super) content: Arc<Content>,
    pub(super) attempts: u32,
    pub(super) reason: DeadReason,
    pub(super) blocks: bool,
    pub(super) dead_at: Micros,
    pub(super) last_error: Option<String>,
    pub(super) history: Vec<Tried>,
}

/// A confirmed delivery, where these are kept.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) content: Arc<Content>,
    pub(super) at: DeliveryAt,
    pub(super) attempts: u32,
    pub(super) delivered_at: Micros,
    pub(super) history: Vec<Tried>,
}

/// How long a relay may work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) until: Micros,
    pub(super) length: Micros,
}

impl Lease {
    /// One that ends further ahead than it is long was given by a clock that has stepped back since.
    pub(super) fn is_valid(&self, now: Micros) -> bool {
        self.until > now && self.until <= now.saturating_add(self.length).saturating_add(self.length / 5)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct LaneRow {
    pub(super) epoch: i64,
    pub(super) owner: Option<OwnerId>,
    /// Owners that vanished while they held it, since it was last cleared.
    pub(super) crashed: Vec<OwnerId>,
    pub(super) quarantined: Option<Quarantined>,
    /// Who works on the quarantined message now.
    pub(super) quarantine_by: Option<OwnerId>,
    /// Owners that vanished while they worked on the quarantined message.
    pub(super) quarantine_crashed: Vec<OwnerId>,
}
