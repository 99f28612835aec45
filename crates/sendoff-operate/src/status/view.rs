//! The answer, as printed and served.

use std::collections::BTreeMap;

use sendoff::Uuid;
use sendoff::store::{JobCounts, Rates};
use serde::Serialize;

use super::SampledCount;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Messages flow.
    Ok,
    /// Somebody should look at it.
    Warning,
    /// Messages do not flow.
    Critical,
}

impl Level {
    /// Its name.
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
    /// How bad it is.
    pub level: Level,
    /// The verdict, in one sentence.
    pub verdict: String,
    /// What the verdict is made of, the worst first.
    pub reasons: Vec<ReasonView>,
    /// When it was read, by the database's clock.
    pub at: String,
    /// Messages in and deliveries out per second, over the last minute, of all live relays; `None` if none has written
    /// figures.
    pub rates: Option<Rates>,
    /// Due and never tried.
    pub pending: BacklogView,
    /// Everything that is not delivered and not scheduled for later: pending, retry, blocked and deferred.
    pub backlog: BacklogView,
    /// Failed, and tried again.
    pub retry: SampledCount,
    /// Behind a failed message of their key.
    pub blocked: SampledCount,
    /// Not tried for now, because their sink is down or paused, for example.
    pub deferred: SampledCount,
    /// Not due yet.
    pub scheduled: SampledCount,
    /// Sinks, by name.
    pub sinks: Vec<SinkView>,
    /// Topics with a backlog, the largest first, and paused ones.
    pub topics: Vec<TopicView>,
    /// How many topics with a backlog are left out.
    pub topics_left_out: usize,
    /// Keys whose messages wait for a failed one.
    pub blocked_keys: SampledCount,
    /// Dead letters.
    pub dead: DeadView,
    /// Registered relays, by name.
    pub relays: Vec<RelayView>,
    /// The lanes.
    pub lanes: LanesView,
    /// Jobs by state; `None` if there are none.
    pub jobs: Option<JobCounts>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasonView {
    /// How bad it is.
    pub level: Level,
    /// What it is, as one word for programs.
    pub code: &'static str,
    /// What it is, for people.
    pub text: String,
}

/// How much there is, and the age of the oldest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct BacklogView {
    /// How many.
    #[serde(flatten)]
    pub count: SampledCount,
    /// The age of the oldest, in seconds.
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
    /// It takes messages.
    Up,
    /// It is up again, and gets larger batches step by step.
    RampingUp,
    /// It is down.
    Down,
    /// An operator paused it.
    Paused,
    /// No live relay has written figures about it.
    Unknown,
}

/// A sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SinkView {
    /// Its name.
    pub name: String,
    /// Whether it takes messages.
    pub state: SinkStateView,
    /// Since when it is down.
    pub down_since: Option<String>,
    /// For how long.
    pub down_seconds: Option<f64>,
    /// How many live relays have figures about it, and how many of them see it down.
    pub relays: u64,
    /// How many of them see it down.
    pub relays_down: u64,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Since when it is paused.
    pub paused_since: Option<String>,
    /// For how long.
    pub paused_seconds: Option<f64>,
    /// Confirmed deliveries per second, over the last minute.
    pub delivered_rate: f64,
    /// Failed attempts per second, over the last minute.
    pub failed_rate: f64,
    /// Confirmed deliveries since the live relays started.
    pub delivered: u64,
    /// Failed attempts since the live relays started.
    pub failed: u64,
    /// Messages in flight for it.
    pub in_flight: u64,
    /// What is not delivered and not scheduled for later, including ready messages that are routed to it.
    pub backlog: BacklogView,
    /// Of those, deferred ones.
    pub deferred: SampledCount,
    /// Of those, failed ones that are tried again.
    pub retry: SampledCount,
    /// Of those, blocked ones.
    pub blocked: SampledCount,
    /// Its last error.
    pub last_error: Option<String>,
    /// How long ago that was, in seconds.
    pub last_error_seconds: Option<f64>,
    /// After how many seconds it is probed, if it is down.
    pub next_probe_seconds: Option<f64>,
    /// Whether the newest figures about it are stale.
    pub stale: bool,
}

/// A topic with a backlog.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopicView {
    /// Its name; of a paused topic, its pattern.
    pub topic: String,
    /// What is not delivered and not scheduled for later.
    pub backlog: BacklogView,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// For how long it has been paused.
    pub paused_seconds: Option<f64>,
}

/// Dead letters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeadView {
    /// How many.
    #[serde(flatten)]
    pub count: SampledCount,
    /// By reason; those that were not counted are left out.
    pub reasons: BTreeMap<String, u64>,
}

/// A registered relay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelayView {
    /// Its id.
    pub owner: Uuid,
    /// Its name.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// The hash of its configuration.
    pub config: String,
    /// Whether another live relay has another configuration.
    pub config_differs: bool,
    /// Whether its lease is valid.
    pub alive: bool,
    /// How long ago it renewed its lease, in seconds.
    pub beat_seconds: f64,
    /// The lanes that it holds.
    pub lanes: u64,
    /// Messages in flight.
    pub in_flight: Option<u64>,
    /// What it does per second.
    pub rates: Option<Rates>,
    /// The age of its figures, in seconds; `None` if it has written none.
    pub figures_seconds: Option<f64>,
    /// Whether its figures are too old to go by.
    pub stale: bool,
}

/// The lanes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LanesView {
    /// How many there are.
    pub total: u64,
    /// Those that no live relay holds.
    pub free: Vec<i64>,
    /// Lanes with ready messages that no live relay holds.
    pub stuck: Option<StuckView>,
    /// The lane of a row that no relay reads, because that lane or its number does not exist.
    pub stray: Option<i64>,
}

/// Lanes with ready messages that no live relay holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StuckView {
    /// How many.
    pub lanes: u64,
    /// The age of the oldest message in them, in seconds.
    pub oldest_seconds: f64,
}
