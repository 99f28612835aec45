//! The tables: one a state of a message, and those about relays.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sendoff::store::{
    AuditView, DeadReason, Delivery, Lane, OwnerId, PauseView, Place, RelayCard, RetryState, Room, Suspect,
};
use sendoff::{Headers, Uuid};

use super::Lanes;
use super::clock::{Micros, span, time};
use super::dedup::Dedup;

/// The empty leg: not routed yet.
pub(super) const UNROUTED: &str = "";

pub(super) type ReadyAt = (Lane, i64);
/// A leg of a message: two messages may have one number, after numbers were set back.
pub(super) type LegAt = (Lane, i64, Arc<str>, Uuid);

#[derive(Clone)]
pub(super) struct Tables {
    /// Which history this is: a number that no other one has.
    pub(super) history: u64,
    pub(super) next_seq: i64,
    pub(super) ready: BTreeMap<ReadyAt, Arc<Content>>,
    pub(super) waiting: BTreeMap<LegAt, Waiting>,
    pub(super) dead: BTreeMap<LegAt, Dead>,
    pub(super) delivered: Vec<Kept>,
    pub(super) relays: BTreeMap<OwnerId, Lease>,
    /// What people call them.
    pub(super) cards: BTreeMap<OwnerId, RelayCard>,
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
    pub(super) fn waiting_in(&self, lane: Lane) -> impl Iterator<Item = (&LegAt, &Waiting)> {
        self.waiting.range(leg_range(lane))
    }

    pub(super) fn waiting_in_mut(&mut self, lane: Lane) -> impl Iterator<Item = (&LegAt, &mut Waiting)> {
        self.waiting.range_mut(leg_range(lane))
    }

    pub(super) fn dead_in(&self, lane: Lane) -> impl Iterator<Item = (&LegAt, &Dead)> {
        self.dead.range(leg_range(lane))
    }
}

/// Where every message is.
pub(super) struct Messages {
    ready: BTreeMap<ReadyAt, Arc<Content>>,
    waiting: BTreeMap<LegAt, Waiting>,
    dead: BTreeMap<LegAt, Dead>,
    delivered: Vec<Kept>,
}

fn leg_range(lane: Lane) -> std::ops::Range<LegAt> {
    (lane, i64::MIN, UNROUTED.into(), Uuid::nil())..(lane + 1, i64::MIN, UNROUTED.into(), Uuid::nil())
}

/// What the producer said, and when.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Content {
    pub(super) id: Uuid,
    pub(super) topic: String,
    pub(super) payload: Bytes,
    pub(super) content_type: Option<String>,
    pub(super) headers: Headers,
    pub(super) key: Option<String>,
    pub(super) aggregate_type: Option<String>,
    pub(super) aggregate_id: Option<String>,
    pub(super) schema_version: Option<i32>,
    pub(super) idempotency_key: Option<String>,
    pub(super) priority: i16,
    pub(super) max_attempts: Option<u32>,
    pub(super) created_at: Micros,
    pub(super) available_at: Option<Micros>,
    pub(super) expires_at: Option<Micros>,
}

impl Content {
    /// The lane, by the key, or by the id where there is no key.
    pub(super) fn lane(&self, lanes: Lanes) -> Lane {
        let Lanes { common, priority } = lanes;
        match (&self.key, self.priority) {
            (Some(key), _) => bucket(key, common),
            (None, 0) => bucket(&self.id, common),
            (None, 1..) => common + bucket(&self.id, priority),
            (None, _) => common + priority + bucket(&self.id, priority),
        }
    }

    pub(super) fn delivery(&self, room: Room, lane: Lane, seq: i64, leg: &Arc<str>, attempts: u32) -> Delivery {
        Delivery {
            id: self.id,
            topic: self.topic.clone(),
            payload: self.payload.clone(),
            content_type: self.content_type.clone(),
            headers: self.headers.clone(),
            key: self.key.clone(),
            aggregate_type: self.aggregate_type.clone(),
            aggregate_id: self.aggregate_id.clone(),
            schema_version: self.schema_version,
            idempotency_key: self.idempotency_key.clone(),
            priority: self.priority,
            created_at: time(self.created_at),
            expires_at: self.expires_at.map(time),
            attempts,
            max_attempts: self.max_attempts,
            place: Place {
                room,
                lane,
                seq,
                id: self.id.into(),
                leg: (**leg != *UNROUTED).then(|| leg.clone()),
                spot: 0,
            },
        }
    }
}

fn bucket(value: &impl Hash, count: Lane) -> Lane {
    // The hasher starts from fixed keys, so a simulation repeats itself.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    (hasher.finish() % u64::from(count)) as Lane
}

/// Why a row waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitState {
    Scheduled,
    Held,
    Tried(RetryState),
}

impl WaitState {
    /// Whether followers of its key wait for it.
    pub(super) fn blocks(self) -> bool {
        match self {
            Self::Held | Self::Tried(RetryState::Retry | RetryState::Down) => true,
            Self::Scheduled | Self::Tried(RetryState::Parked) => false,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Held => "held",
            Self::Tried(state) => state.as_str(),
        }
    }
}

/// One attempt, or one change of its error.
#[derive(Debug, Clone)]
pub(super) struct Tried {
    pub(super) at: Micros,
    pub(super) leg: Arc<str>,
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

/// A delivered message, where these are kept.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) content: Arc<Content>,
    pub(super) at: LegAt,
    pub(super) attempts: u32,
    pub(super) delivered_at: Micros,
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
    /// Owners that vanished while they held it, since it was last absolved.
    pub(super) crashed: Vec<OwnerId>,
    pub(super) suspect: Option<Suspect>,
    /// Who works on the suspect now.
    pub(super) suspect_by: Option<OwnerId>,
    /// Owners that vanished while they worked on the suspect.
    pub(super) suspect_crashed: Vec<OwnerId>,
}
