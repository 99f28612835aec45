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
    /// Called when a sink has returned the outcomes of a batch.
    fn published(&self, batch: &PublishedBatch<'_>) {
        let _ = batch;
    }

    /// Called after a charged attempt failed, when it is written that the delivery will be tried again. Called once for
    /// each attempt that [`RunReport::retried`](crate::RunReport::retried) counts.
    fn retried(&self, outgoing: &Outgoing, sink: &str) {
        let _ = (outgoing, sink);
    }

    /// Called when a dead letter is written. Called once for each delivery that
    /// [`RunReport::dead`](crate::RunReport::dead) counts.
    fn dead_lettered(&self, outgoing: &Outgoing, sink: &str, reason: DeadReason) {
        let _ = (outgoing, sink, reason);
    }

    /// Called when results were written, or were lost with their lanes.
    fn settled(&self, settled: &SettledBatch) {
        let _ = settled;
    }

    /// Called when the history of the database has changed, as after a failover.
    fn history_changed(&self) {}

    /// Called a few times per second with the health of the relay.
    fn relay_health(&self, relay_health: &RelayHealth) {
        let _ = relay_health;
    }
}

/// A batch with the outcomes that its sink returned.
#[derive(Debug)]
pub struct PublishedBatch<'a> {
    /// The name of the sink.
    pub sink: &'a Arc<str>,
    /// When the batch was passed to the sink.
    pub begun: Instant,
    /// When the sink returned the outcomes.
    pub answered: Instant,
    /// The deliveries of the batch. Those whose lane was lost in the meantime are left out.
    pub messages: &'a [PublishedMessage<'a>],
}

/// A delivery with its outcome.
#[derive(Debug, Clone, Copy)]
pub struct PublishedMessage<'a> {
    /// The message of the delivery.
    pub outgoing: &'a Arc<Outgoing>,
    /// When the relay read the message.
    pub claim: Claimed,
    /// The outcome that the sink returned.
    pub outcome: &'a Outcome,
}

/// When a relay read a message.
#[derive(Debug, Clone, Copy)]
pub struct Claimed {
    /// When the message was read.
    pub at: Instant,
    /// When the relay last began a read that emptied the ready table: the message was not there yet. `None`: the relay
    /// has not emptied the table since it acquired its lanes.
    pub caught_up: Option<Instant>,
}

/// Results that were written to the store.
#[derive(Debug, Clone, Copy)]
pub struct SettledBatch {
    /// The number of rows.
    pub rows: usize,
    /// The number of rows whose lane belongs to another relay now. They were not changed.
    pub lost: usize,
    /// How long it took to write the results.
    pub took: Duration,
    /// How long the oldest result had waited when all were written.
    pub lag: Duration,
}

/// The health of a relay.
#[derive(Debug, Clone)]
pub struct RelayHealth {
    /// When the health was reported.
    pub at: Instant,
    /// The lanes that the relay holds, each with its number of rows in flight.
    pub lanes: Vec<(Lane, usize)>,
    /// The number of rows in flight: messages, or deliveries from the waiting table.
    pub in_flight: usize,
    /// The number of payload bytes in flight.
    pub bytes_in_flight: usize,
    /// The relay's sinks, in the order they were added.
    pub sinks: Vec<SinkHealth>,
    /// What wakes the relay for new messages.
    pub wake_source: WakeSource,
    /// The number of live relays, as of the last heartbeat of this relay.
    pub relays: usize,
    /// How long the oldest unwritten result has waited.
    pub unsettled: Option<Duration>,
    /// When a read last succeeded.
    pub read: Option<Instant>,
    /// Whether the relay is stopping.
    pub stopping: bool,
    /// Failures of hooks since the relay was built.
    pub hooks: HookFailures,
}

/// The health of a sink, as a relay sees it.
#[derive(Debug, Clone)]
pub struct SinkHealth {
    /// The sink's name.
    pub name: Arc<str>,
    /// Whether the sink takes messages.
    pub state: SinkState,
    /// Whether an operator has paused the sink.
    pub paused: bool,
    /// The number of deliveries in flight for this sink.
    pub in_flight: usize,
}

/// Whether a sink takes messages, as its circuit breaker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SinkState {
    /// The sink takes messages.
    Up,
    /// The sink is down: it gets no messages, or one as a probe.
    Down,
    /// The sink is up again, and gets larger batches step by step.
    RampingUp,
}

impl SinkState {
    /// All states of a sink.
    pub const ALL: [Self; 3] = [Self::Up, Self::Down, Self::RampingUp];

    /// The state as a label value in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::RampingUp => "ramping_up",
        }
    }
}

/// What wakes a relay for new messages. Every relay also polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WakeSource {
    /// Emitters in the relay's own process wake it.
    InProcess,
    /// Notifications of the database wake the relay.
    Listen,
    /// Nothing wakes the relay; it only polls.
    Poll,
}

impl WakeSource {
    /// All wake sources.
    pub const ALL: [Self; 3] = [Self::InProcess, Self::Listen, Self::Poll];

    /// The wake source as a label value in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProcess => "in_process",
            Self::Listen => "listen",
            Self::Poll => "poll",
        }
    }
}
