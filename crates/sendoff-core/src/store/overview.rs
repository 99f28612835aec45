//! An overview for operators: read from figures, statistics and samples, without counting a large table.

use std::time::{Duration, SystemTime};

use super::{JobCounts, OwnerId, PauseView, RelayFigures, SinkFigures, Status, StoreHealth};

/// An overview of an outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// The counts of messages, the ages of ready messages, and the database's time.
    pub health: StoreHealth,
    /// All registered relays, including those whose lease has expired, sorted by name.
    pub relays: Vec<RelayStatus>,
    /// The number of lanes.
    pub lanes: u64,
    /// The lanes that no relay with a valid lease holds.
    pub free_lanes: Vec<i64>,
    /// A sample of the ready messages: the first ones of each lane, as far as the store can find them.
    pub ready: Vec<Group>,
    /// A sample of up to [`Overview::SAMPLE`] waiting deliveries.
    pub waiting: Vec<Group>,
    /// A sample of up to [`Overview::SAMPLE`] dead letters, counted by reason.
    pub dead: Vec<(String, u64)>,
    /// The number of keys with blocked deliveries in a sample of [`Overview::SAMPLE`] rows, or with a dead letter that
    /// blocks.
    pub blocked_keys: u64,
    /// The paused topics and sinks.
    pub pauses: Vec<PauseView>,
    /// A sample of up to [`Overview::SAMPLE`] jobs, counted by state; `None` if the store has no jobs or the role may
    /// not read them.
    pub jobs: Option<JobCounts>,
}

impl Overview {
    /// The largest number of rows in a sample.
    pub const SAMPLE: u32 = 10_000;

    /// The largest number of ready messages of each lane in a sample.
    pub const READY_PER_LANE: u32 = 25;
}

/// Sampled rows with the same topic, sink and status.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The topic of the sampled rows.
    pub topic: String,
    /// The sink of the sampled rows; empty before routing.
    pub sink: String,
    /// The status of the sampled rows.
    pub status: Status,
    /// The number of sampled rows.
    pub count: u64,
    /// The age of the oldest sampled row, counted from when it became available.
    pub oldest: Duration,
}

/// A registered relay with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayStatus {
    /// The relay's id.
    pub owner: OwnerId,
    /// The relay's name.
    pub name: String,
    /// The version of the relay's program.
    pub version: String,
    /// The hash of the relay's configuration.
    pub config: String,
    /// The relay's routes, as text from [`Routes::to_text`](super::Routes::to_text).
    pub routes: String,
    /// When the relay last renewed its lease.
    pub beat_at: SystemTime,
    /// Whether the relay's lease is valid.
    pub alive: bool,
    /// The number of lanes whose owner is this relay.
    pub lanes: u64,
    /// The relay's own figures, and when they were written.
    pub figures: Option<(SystemTime, RelayFigures)>,
    /// The figures of the relay's sinks, by name, and when they were written.
    pub sinks: Vec<(String, SystemTime, SinkFigures)>,
}

impl RelayStatus {
    /// Adds a row of figures. From text of another version, it reads the fields that it knows.
    pub fn add_figures(&mut self, sink: String, written_at: SystemTime, text: &str) {
        if sink.is_empty() {
            let figures = serde_json::from_str(text).unwrap_or_default();
            self.figures = Some((written_at, figures));
        } else {
            let figures = serde_json::from_str(text).unwrap_or_default();
            self.sinks.push((sink, written_at, figures));
        }
    }
}
