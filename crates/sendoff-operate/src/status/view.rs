//! The status as it is printed and served.

use std::collections::BTreeMap;

use sendoff::Uuid;
use sendoff::store::{JobCounts, Rates};
use serde::Serialize;

use super::SampledCount;

/// How serious the status of an outbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Messages flow.
    Ok,
    /// Somebody should check the outbox.
    Warning,
    /// Messages do not flow.
    Critical,
}

impl Level {
    /// The name of the level.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// The status of an outbox.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusView {
    /// The level of the status.
    pub level: Level,
    /// The verdict, in one sentence.
    pub verdict: String,
    /// The reasons for the verdict, the worst first.
    pub reasons: Vec<ReasonView>,
    /// When the status was read, by the database's clock.
    pub at: String,
    /// Messages read and deliveries confirmed per second, over the last minute, of all live relays; `None` if no relay
    /// has written figures.
    pub rates: Option<Rates>,
    /// Messages that are due and were never tried.
    pub pending: BacklogView,
    /// All deliveries that are not delivered and not scheduled for later: pending, retry, blocked and deferred.
    pub backlog: BacklogView,
    /// Deliveries that failed and are tried again.
    pub retry: SampledCount,
    /// Deliveries that wait behind a failed message with the same key.
    pub blocked: SampledCount,
    /// Deliveries that are not tried for now, for example because their sink is down or paused.
    pub deferred: SampledCount,
    /// Messages that are not due before a scheduled time.
    pub scheduled: SampledCount,
    /// The sinks, by name.
    pub sinks: Vec<SinkView>,
    /// Topics with a backlog, the largest first, and paused ones.
    pub topics: Vec<TopicView>,
    /// How many topics with a backlog are left out.
    pub topics_left_out: usize,
    /// Keys whose messages wait behind a failed message.
    pub blocked_keys: SampledCount,
    /// The dead letters.
    pub dead: DeadView,
    /// Registered relays, by name.
    pub relays: Vec<RelayView>,
    /// The lanes of the outbox.
    pub lanes: LanesView,
    /// Jobs by state; `None` if there are none.
    pub jobs: Option<JobCounts>,
}

/// One problem of an outbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasonView {
    /// How serious the problem is.
    pub level: Level,
    /// The code of the problem, as one word for programs.
    pub code: &'static str,
    /// The problem, as text for people.
    pub text: String,
}

/// The size of a backlog and the age of its oldest row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct BacklogView {
    /// The number of rows in the backlog.
    #[serde(flatten)]
    pub count: SampledCount,
    /// The age of the oldest row in the backlog, in seconds.
    pub oldest_seconds: Option<f64>,
}

impl BacklogView {
    pub(super) fn add(&mut self, count: SampledCount, oldest_seconds: f64) {
        if count.count > 0 {
            self.count = self.count.plus(count);
            self.oldest_seconds = Some(self.oldest_seconds.unwrap_or(0.0).max(oldest_seconds));
        }
    }
}

/// Whether a sink takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkStateView {
    /// The sink takes messages.
    Up,
    /// The sink is up again, and gets larger batches step by step.
    RampingUp,
    /// The sink is down.
    Down,
    /// An operator paused the sink.
    Paused,
    /// No live relay has written figures about the sink.
    Unknown,
}

/// The status of a sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SinkView {
    /// The sink's name.
    pub name: String,
    /// Whether the sink takes messages.
    pub state: SinkStateView,
    /// When the sink went down.
    pub down_since: Option<String>,
    /// How long the sink has been down, in seconds.
    pub down_seconds: Option<f64>,
    /// The number of live relays that have figures about this sink.
    pub relays: u64,
    /// The number of live relays for which the sink is down.
    pub relays_down: u64,
    /// The operator who paused the sink.
    pub paused_by: Option<String>,
    /// When the sink was paused.
    pub paused_since: Option<String>,
    /// How long the sink has been paused, in seconds.
    pub paused_seconds: Option<f64>,
    /// Confirmed deliveries to this sink per second, over the last minute.
    pub delivered_rate: f64,
    /// Failed attempts at this sink per second, over the last minute.
    pub failed_rate: f64,
    /// Confirmed deliveries to this sink since the live relays started.
    pub delivered: u64,
    /// Failed attempts at this sink since the live relays started.
    pub failed: u64,
    /// The number of messages in flight for this sink.
    pub in_flight: u64,
    /// Deliveries to this sink that are not delivered and not scheduled for later, including ready messages that are
    /// routed to it.
    pub backlog: BacklogView,
    /// The deferred part of the sink's backlog.
    pub deferred: SampledCount,
    /// The part of the sink's backlog that failed and is tried again.
    pub retry: SampledCount,
    /// The blocked part of the sink's backlog.
    pub blocked: SampledCount,
    /// The sink's last error.
    pub last_error: Option<String>,
    /// The age of the sink's last error, in seconds.
    pub last_error_seconds: Option<f64>,
    /// The time until the next probe of the sink in seconds, if it is down.
    pub next_probe_seconds: Option<f64>,
    /// Whether the newest figures about the sink are stale.
    pub stale: bool,
}

/// A topic with a backlog.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopicView {
    /// The name of the topic, or the pattern of a paused topic.
    pub topic: String,
    /// Deliveries of this topic that are not delivered and not scheduled for later.
    pub backlog: BacklogView,
    /// The operator who paused the topic.
    pub paused_by: Option<String>,
    /// How long the topic has been paused, in seconds.
    pub paused_seconds: Option<f64>,
}

/// Dead letters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeadView {
    /// The number of dead letters.
    #[serde(flatten)]
    pub count: SampledCount,
    /// The number of dead letters by reason. It covers only the dead letters that were counted.
    pub reasons: BTreeMap<String, u64>,
}

/// A registered relay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelayView {
    /// The relay's id.
    pub owner: Uuid,
    /// The relay's name.
    pub name: String,
    /// The version of the relay's program.
    pub version: String,
    /// The hash of the relay's configuration.
    pub config: String,
    /// Whether another live relay has another configuration.
    pub config_differs: bool,
    /// Whether the relay's lease is valid.
    pub alive: bool,
    /// How long ago the relay renewed its lease, in seconds.
    pub beat_seconds: f64,
    /// The number of lanes that the relay holds.
    pub lanes: u64,
    /// The number of messages that the relay has in flight.
    pub in_flight: Option<u64>,
    /// What the relay does per second.
    pub rates: Option<Rates>,
    /// The age of the relay's figures in seconds; `None` if it has written none.
    pub figures_seconds: Option<f64>,
    /// Whether the relay's figures are stale.
    pub stale: bool,
}

/// The lanes of the outbox and problems with them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LanesView {
    /// The number of lanes.
    pub total: u64,
    /// The lanes that no live relay holds.
    pub free: Vec<i64>,
    /// Lanes with ready messages that no live relay holds.
    pub stuck: Option<StuckView>,
    /// The lane in a row that no relay reads, because that lane or the row's number does not exist.
    pub stray: Option<i64>,
}

/// Lanes with ready messages that no live relay holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StuckView {
    /// The number of such lanes.
    pub lanes: u64,
    /// The age of the oldest message in such a lane, in seconds.
    pub oldest_seconds: f64,
}
