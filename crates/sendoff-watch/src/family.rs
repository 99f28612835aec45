//! Every metric there is.

/// What kind of metric it is, in Prometheus' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How values are distributed; its series end in `_bucket`, `_sum` and `_count`.
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
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it means.
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

        /// All metrics, in the order they are shown.
        pub const FAMILIES: &[Family] = &[$($constant),*];
    };
}

families! {
    BUILD = "sendoff_build_info", Gauge, ["version"], "Always 1; the version stands in the label.";
    READY = "sendoff_ready", Gauge, [], "Whether the relay is ready (1) or not (0), as /ready says.";
    OBSTACLE = "sendoff_obstacle", Gauge, ["kind"], "Whether something of this kind (1) keeps the relay from being ready.";
    PUBLISHED = "sendoff_published_total", Counter, ["topic", "sink", "outcome"],
        "Messages that a sink answered for: delivered, temporary, permanent, unknown, down, or not_yet.";
    RETRIED = "sendoff_retried_total", Counter, ["topic", "sink"], "Failed attempts after which a message is tried again.";
    DEAD = "sendoff_dead_lettered_total", Counter, ["topic", "sink", "reason"], "Messages that went to the dead letters.";
    EMIT_TO_READY = "sendoff_emit_to_ready_seconds", Histogram, ["topic", "sink"],
        "From the begin of the emitting transaction until its message could be read, as late as the relay knows for certain.";
    READY_TO_CLAIMED = "sendoff_ready_to_claimed_seconds", Histogram, ["topic", "sink"],
        "From then until the relay read the message.";
    CLAIMED_TO_CONFIRMED = "sendoff_claimed_to_confirmed_seconds", Histogram, ["topic", "sink"],
        "From reading a message until its sink confirmed it.";
    COMMIT_TO_PUBLISH = "sendoff_commit_to_publish_seconds", Histogram, ["topic", "sink"],
        "End to end: from the begin of the emitting transaction until the sink confirmed the message, retries included.";
    BATCH = "sendoff_batch_seconds", Histogram, ["sink"], "How long a sink took to answer a batch.";
    SETTLE = "sendoff_settle_seconds", Histogram, [], "How long it took to write decisions to the database.";
    SETTLE_LAG = "sendoff_settle_lag_seconds", Histogram, [], "How long the oldest decision of those written at once had waited.";
    SETTLED = "sendoff_settled_rows_total", Counter, [], "Rows that were settled.";
    HISTORY_CHANGES = "sendoff_history_changes_total", Counter, [], "Changes of the database's history that the relay noticed, as after a failover.";
    LANES_LOST = "sendoff_lanes_lost_total", Counter, [], "Lanes that turned out to be another relay's when settling.";
    HOOKS = "sendoff_hook_failures_total", Counter, ["kind"], "Calls of hooks that failed, panicked or were dropped.";
    MESSAGES = "sendoff_messages", Gauge, ["state"],
        "Messages in the whole outbox: ready, waiting and dead; exact below 10000, else about.";
    OLDEST_READY = "sendoff_oldest_ready_seconds", Gauge, [], "How old the oldest ready message is; 0 without one.";
    OLDEST_DUE = "sendoff_oldest_due_seconds", Gauge, [], "For how long the oldest waiting message has been due; 0 without one.";
    STORE_UP = "sendoff_store_up", Gauge, [], "Whether the last look at the database worked (1) or not (0).";
    RELAYS = "sendoff_relays", Gauge, [], "Relays that are alive, as this one sees it.";
    LANES = "sendoff_lanes_owned", Gauge, [], "Lanes that this relay holds.";
    IN_HAND = "sendoff_in_hand", Gauge, [], "Messages that this relay has read and not settled yet.";
    IN_HAND_BYTES = "sendoff_in_hand_bytes", Gauge, [], "Their payloads in bytes, about.";
    UNSETTLED = "sendoff_unsettled_seconds", Gauge, [], "How long the oldest decision that is not written has waited; 0 without one.";
    RUNG = "sendoff_wake_rung", Gauge, ["rung"], "How the relay learns of new messages (1): poke, listen or poll.";
    SINK_STATE = "sendoff_sink_state", Gauge, ["sink", "state"], "How the circuit breaker of a sink stands (1): up, down or ramping_up.";
    SINK_PAUSED = "sendoff_sink_paused", Gauge, ["sink"], "Whether an operator has paused the sink.";
    SINK_IN_HAND = "sendoff_sink_in_hand", Gauge, ["sink"], "Messages in hand that are for the sink.";
    SINK_REACHABLE = "sendoff_sink_reachable", Gauge, ["sink"], "Whether the last check could reach the sink.";
}
