//! All metrics of Sendoff.

/// The kind of a metric, as in Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A counter, which only grows.
    Counter,
    /// A gauge, which goes up and down.
    Gauge,
    /// A histogram: the distribution of values. Its series end in `_bucket`, `_sum` and `_count`.
    Histogram,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// The name of the metric.
    pub name: &'static str,
    /// The kind of the metric.
    pub kind: Kind,
    /// The labels of the metric.
    pub labels: &'static [&'static str],
    /// The help text of the metric.
    pub help: &'static str,
}

macro_rules! families {
    ($($constant:ident = $name:literal, $kind:ident, [$($label:literal),*], $help:literal;)*) => {
        $(pub(crate) const $constant: Family = Family {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All metrics, in the order of the output.
        pub const FAMILIES: &[Family] = &[$($constant),*];
    };
}

families! {
    BUILD = "sendoff_build_info", Gauge, ["version"], "Always 1; the label has the version.";
    READY = "sendoff_ready", Gauge, [], "Whether the relay is ready (1) or not (0), as in /ready.";
    OBSTACLE = "sendoff_obstacle", Gauge, ["kind"],
        "Whether an obstacle of this kind keeps the relay from being ready (1).";
    PUBLISHED = "sendoff_published_total", Counter, ["topic", "sink", "outcome"],
        "Answers of a sink, one for each delivery that it got, by outcome: delivered, temporary, permanent, unknown, down, or not_yet.";
    RETRIED = "sendoff_retried_total", Counter, ["topic", "sink"],
        "Failed attempts after which a delivery is tried again, when that is written. Deferred and blocked deliveries do not count.";
    DEAD = "sendoff_dead_lettered_total", Counter, ["topic", "sink", "reason"], "Deliveries that became dead letters, when that is written.";
    EMIT_TO_READY = "sendoff_emit_to_ready_seconds", Histogram, ["topic", "sink"],
        "From the start of the emitting transaction until its message could be read, at the latest time that the relay knows for certain.";
    READY_TO_CLAIMED = "sendoff_ready_to_claimed_seconds", Histogram, ["topic", "sink"],
        "From that time until the relay read the message.";
    CLAIMED_TO_CONFIRMED = "sendoff_claimed_to_confirmed_seconds", Histogram, ["topic", "sink"],
        "From reading a message until its sink confirmed the delivery.";
    BEGIN_TO_CONFIRMED = "sendoff_begin_to_confirmed_seconds", Histogram, ["topic", "sink"],
        "End to end: from the start of the emitting transaction until the sink confirmed the delivery, with retries.";
    BATCH = "sendoff_batch_seconds", Histogram, ["sink"], "How long a sink took to answer a batch.";
    SETTLE = "sendoff_settle_seconds", Histogram, [], "How long it took to write results to the database.";
    SETTLE_LAG = "sendoff_settle_lag_seconds", Histogram, [], "How long the oldest result of a settlement had waited.";
    SETTLED = "sendoff_settled_rows_total", Counter, [],
        "Settled rows: messages from the ready table, deliveries from the waiting table.";
    HISTORY_CHANGES = "sendoff_history_changes_total", Counter, [],
        "Changes of the database's history that the relay noticed, as after a failover.";
    LANES_LOST = "sendoff_lanes_lost_total", Counter, [], "Lanes that belonged to another relay when this one settled.";
    HOOKS = "sendoff_hook_failures_total", Counter, ["kind"], "Calls of hooks that failed, panicked or were dropped.";
    ROWS = "sendoff_rows", Gauge, ["state"],
        "Rows in the whole outbox: ready messages, and waiting and dead deliveries. Exact below 10000, otherwise an estimate.";
    OLDEST_READY = "sendoff_oldest_ready_seconds", Gauge, [], "The age of the oldest ready message; 0 without one.";
    OLDEST_DUE = "sendoff_oldest_due_seconds", Gauge, [],
        "How long the oldest waiting delivery has been due; 0 without one.";
    STORE_UP = "sendoff_store_up", Gauge, [], "Whether the last check of the database succeeded (1) or not (0).";
    RELAYS = "sendoff_relays", Gauge, [], "Live relays, as this relay sees them.";
    LANES = "sendoff_lanes_owned", Gauge, [], "Lanes that this relay holds.";
    IN_FLIGHT = "sendoff_in_flight_rows", Gauge, [],
        "Rows that this relay has read and not settled yet: messages, or deliveries from the waiting table.";
    IN_FLIGHT_BYTES = "sendoff_in_flight_bytes", Gauge, [], "Their approximate size in bytes.";
    UNSETTLED = "sendoff_unsettled_seconds", Gauge, [],
        "How long the oldest unwritten result has waited; 0 without one.";
    WAKE_SOURCE = "sendoff_wake_source", Gauge, ["wake_source"],
        "How the relay learns of new messages (1): in_process, listen or poll.";
    SINK_STATE = "sendoff_sink_state", Gauge, ["sink", "state"],
        "State of the circuit breaker of a sink (1): up, down or ramping_up.";
    SINK_PAUSED = "sendoff_sink_paused", Gauge, ["sink"], "Whether an operator has paused the sink (1).";
    SINK_IN_FLIGHT = "sendoff_sink_in_flight_deliveries", Gauge, ["sink"], "Deliveries in flight for the sink.";
    SINK_REACHABLE = "sendoff_sink_reachable", Gauge, ["sink"], "Whether the last check reached the sink (1).";
}
