//! Reports of a relay about its work, once per batch: for metrics and probes.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{DeadReason, Lane};
use sendoff::{Outcome, Outgoing};
use tokio::time::Instant;

use crate::HookFailures;

/// Observes a relay: for metrics, probes and counts. Every call is made, on the relay's own task, so it has to be quick; for
/// slow work use [`Hooks`](crate::Hooks). A panic is logged and counted with those of hooks, and changes nothing else.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use sendoff::Outcome;
/// use sendoff_relay::{Observer, PublishedBatch};
///
/// #[derive(Default)]
/// struct Delivered(AtomicUsize);
///
/// impl Observer for Delivered {
///     fn published(&self, batch: &PublishedBatch<'_>) {
///         let delivered = batch.messages.iter().filter(|message| *message.outcome == Outcome::Delivered);
///         self.0.fetch_add(delivered.count(), Ordering::Relaxed);
///     }
/// }
/// ```
pub trait Observer: Send + Sync + 'static {
    /// A sink has answered a batch.
    fn published(&self, batch: &PublishedBatch<'_>) {
        let _ = batch;
    }

    /// A charged attempt failed, and it was written that the delivery will be tried again. Called once for each that
    /// [`RunReport::retried`](crate::RunReport::retried) counts.
    fn retried(&self, outgoing: &Outgoing, sink: &str) {
        let _ = (outgoing, sink);
    }

    /// A delivery became a dead letter: it was written. Called once for each that
    /// [`RunReport::dead`](crate::RunReport::dead) counts.
    fn dead_lettered(&self, outgoing: &Outgoing, sink: &str, reason: DeadReason) {
        let _ = (outgoing, sink, reason);
    }

    /// Results were written, or lost with their lanes.
    fn settled(&self, settled: &SettledBatch) {
        let _ = settled;
    }

    /// The database has another history, as after a failover.
    fn history_changed(&self) {}

    /// The health of the relay, reported a few times per second.
    fn relay_health(&self, relay_health: &RelayHealth) {
        let _ = relay_health;
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
    /// The deliveries. Those whose lane was lost meanwhile are left out.
    pub messages: &'a [PublishedMessage<'a>],
}

/// A delivery that a sink has answered for.
#[derive(Debug, Clone, Copy)]
pub struct PublishedMessage<'a> {
    /// The message.
    pub outgoing: &'a Arc<Outgoing>,
    /// When the relay got it.
    pub claim: Claimed,
    /// The answer of the sink.
    pub outcome: &'a Outcome,
}

/// When a relay read a message.
#[derive(Debug, Clone, Copy)]
pub struct Claimed {
    /// When it was read.
    pub at: Instant,
    /// When the relay last began a read that emptied the ready table: the message was not there yet. `None`: the relay has
    /// not caught up since it acquired its lanes.
    pub caught_up: Option<Instant>,
}

/// Written results.
#[derive(Debug, Clone, Copy)]
pub struct SettledBatch {
    /// How many rows.
    pub rows: usize,
    /// How many of their lanes belong to another relay now; rows of those lanes were not changed.
    pub lost: usize,
    /// How long writing took.
    pub took: Duration,
    /// How long the oldest result had waited when all were written.
    pub lag: Duration,
}

/// The health of a relay.
#[derive(Debug, Clone)]
pub struct RelayHealth {
    /// When it was reported.
    pub at: Instant,
    /// The lanes that it holds, each with its number of rows in flight.
    pub lanes: Vec<(Lane, usize)>,
    /// How many rows are in flight: messages, or deliveries from the waiting table.
    pub in_flight: usize,
    /// How many bytes of payload are in flight.
    pub bytes_in_flight: usize,
    /// Its sinks, in the order they were added.
    pub sinks: Vec<SinkHealth>,
    /// How it learns of new messages.
    pub wake_source: WakeSource,
    /// How many relays are alive, as of its last heartbeat.
    pub relays: usize,
    /// How long the oldest unwritten result has waited.
    pub unsettled: Option<Duration>,
    /// When a read last succeeded.
    pub read: Option<Instant>,
    /// Whether it is stopping.
    pub stopping: bool,
    /// Failures of hooks so far.
    pub hooks: HookFailures,
}

/// The health of a sink, as a relay sees it.
#[derive(Debug, Clone)]
pub struct SinkHealth {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it takes messages.
    pub state: SinkState,
    /// Whether an operator has paused it.
    pub paused: bool,
    /// How many deliveries in flight are for it.
    pub in_flight: usize,
}

/// Whether a sink takes messages, as its circuit breaker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SinkState {
    /// It takes messages.
    Up,
    /// It is down: it gets no messages, or a probe.
    Down,
    /// It is up again, and gets larger batches step by step.
    RampingUp,
}

impl SinkState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Up, Self::Down, Self::RampingUp];

    /// The label value in metrics.
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
#[non_exhaustive]
pub enum WakeSource {
    /// Emitters in its own process wake it.
    InProcess,
    /// The database wakes it.
    Listen,
    /// It only polls.
    Poll,
}

impl WakeSource {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::InProcess, Self::Listen, Self::Poll];

    /// The label value in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProcess => "in_process",
            Self::Listen => "listen",
            Self::Poll => "poll",
        }
    }
}
