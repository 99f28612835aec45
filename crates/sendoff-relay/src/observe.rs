//! What a relay tells about its own work, by the batch: for metrics and probes.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{DeadReason, Lane};
use sendoff::{Delivery, Outcome};
use tokio::time::Instant;

use crate::HookFailures;

/// Watches a relay at work. Called on the relay's own task: every call has to be quick. A panic is logged, and counted
/// among those of hooks.
pub trait Observer: Send + Sync + 'static {
    /// A sink has answered a batch.
    fn published(&self, batch: &PublishedBatch<'_>) {
        let _ = batch;
    }

    /// A message failed and will be tried again; the attempt counts.
    fn retried(&self, delivery: &Delivery, leg: &str) {
        let _ = (delivery, leg);
    }

    /// A message goes to the dead letters.
    fn dead_lettered(&self, delivery: &Delivery, leg: &str, reason: DeadReason) {
        let _ = (delivery, leg, reason);
    }

    /// Decisions were written, or lost with their lanes.
    fn settled(&self, settled: &SettledBatch) {
        let _ = settled;
    }

    /// The database has another history, as after a failover.
    fn history_changed(&self) {}

    /// The relay is alive, and this is how it stands: a few times a second.
    fn pulse(&self, pulse: &Pulse) {
        let _ = pulse;
    }
}

/// A batch that a sink has answered.
#[derive(Debug)]
pub struct PublishedBatch<'a> {
    /// The sink's name.
    pub sink: &'a Arc<str>,
    /// When it was handed over.
    pub begun: Instant,
    /// When it was answered.
    pub answered: Instant,
    /// The messages. Those whose lane was lost meanwhile are left out.
    pub messages: &'a [PublishedMessage<'a>],
}

/// A message that a sink has answered for.
#[derive(Debug, Clone, Copy)]
pub struct PublishedMessage<'a> {
    /// The message.
    pub delivery: &'a Arc<Delivery>,
    /// When the relay got it.
    pub claim: Claimed,
    /// What the sink said.
    pub outcome: &'a Outcome,
}

/// When a message came into a relay's hands.
#[derive(Debug, Clone, Copy)]
pub struct Claimed {
    /// When it was read.
    pub at: Instant,
    /// When the relay last began a read that found everything there was in the ready table: the message was not there yet.
    /// `None`: the relay has not caught up since it got its lanes.
    pub caught_up: Option<Instant>,
}

/// Decisions that were written.
#[derive(Debug, Clone, Copy)]
pub struct SettledBatch {
    /// How many rows.
    pub rows: usize,
    /// How many lanes of theirs belong to another relay by now; their rows were not touched.
    pub lost: usize,
    /// How long writing took.
    pub took: Duration,
    /// How long the oldest decision had waited when all was written.
    pub lag: Duration,
}

/// How a relay stands.
#[derive(Debug, Clone)]
pub struct Pulse {
    /// When this was.
    pub at: Instant,
    /// The lanes that it holds, with the number of messages of each in hand.
    pub lanes: Vec<(Lane, usize)>,
    /// How many messages are in hand.
    pub in_hand: usize,
    /// How many bytes of payload are in hand.
    pub bytes_in_hand: usize,
    /// Its sinks, in the order they were added.
    pub sinks: Vec<SinkPulse>,
    /// How it learns of new messages.
    pub rung: WakeRung,
    /// How many relays there are, as its last heartbeat saw it.
    pub relays: usize,
    /// How long the oldest decision that is not written has waited.
    pub unsettled: Option<Duration>,
    /// When a read last succeeded.
    pub read: Option<Instant>,
    /// It is about to stop.
    pub stopping: bool,
    /// What went wrong in hooks so far.
    pub hooks: HookFailures,
}

/// How a sink stands with a relay.
#[derive(Debug, Clone)]
pub struct SinkPulse {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it takes messages.
    pub state: SinkState,
    /// An operator has paused it.
    pub paused: bool,
    /// How many messages in hand are for it.
    pub in_hand: usize,
}

/// Whether a sink takes messages, as its circuit breaker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SinkState {
    /// It takes what it is given.
    Up,
    /// It is down and left alone, or probed.
    Down,
    /// It came back and is given more step by step.
    RampingUp,
}

impl SinkState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Up, Self::Down, Self::RampingUp];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::RampingUp => "ramping_up",
        }
    }
}

/// How a relay learns of new messages. It polls in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WakeRung {
    /// It is woken by emitters in its own process.
    Poke,
    /// It is woken by the database.
    Listen,
    /// By polling alone.
    Poll,
}

impl WakeRung {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Poke, Self::Listen, Self::Poll];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Poke => "poke",
            Self::Listen => "listen",
            Self::Poll => "poll",
        }
    }
}
