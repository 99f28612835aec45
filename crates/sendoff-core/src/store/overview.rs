//! What an operator sees at a glance: read from figures, statistics and samples, never by counting a large table.

use std::time::{Duration, SystemTime};

use super::{JobCounts, OwnerId, PauseView, RelayFigures, SinkFigures, Status, StoreHealth};

/// An outbox at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// Counts, the ages of ready messages, and the database's time.
    pub health: StoreHealth,
    /// All registered relays, including those whose lease has run out, sorted by name.
    pub relays: Vec<RelayStatus>,
    /// How many lanes there are.
    pub lanes: u64,
    /// The lanes that no relay with a valid lease holds.
    pub free_lanes: Vec<i64>,
    /// A sample of the ready messages: the first of each lane, as far as the store can tell.
    pub ready: Vec<Group>,
    /// Up to [`Overview::SAMPLE`] waiting deliveries.
    pub waiting: Vec<Group>,
    /// Up to [`Overview::SAMPLE`] dead letters, by reason.
    pub dead: Vec<(String, u64)>,
    /// Keys with blocked deliveries in a sample of that size, or with a dead letter that blocks.
    pub blocked_keys: u64,
    /// What is paused.
    pub pauses: Vec<PauseView>,
    /// Up to [`Overview::SAMPLE`] jobs by state; `None` if the store has no jobs or the role may not see them.
    pub jobs: Option<JobCounts>,
}

impl Overview {
    /// How many rows a sample has at most.
    pub const SAMPLE: u32 = 10_000;

    /// How many ready messages of each lane a sample has at most.
    pub const READY_PER_LANE: u32 = 25;
}

/// Sampled rows with the same topic, sink and status.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Their topic.
    pub topic: String,
    /// Their sink; empty before routing.
    pub sink: String,
    /// Their status.
    pub status: Status,
    /// How many were sampled.
    pub count: u64,
    /// How long the oldest of them has been there, counted from when it became available.
    pub oldest: Duration,
}

/// A registered relay with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayStatus {
    /// Its id.
    pub owner: OwnerId,
    /// Its name.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// The hash of its configuration.
    pub config: String,
    /// Its routes, as [`Routes::to_text`](super::Routes::to_text) writes them.
    pub routes: String,
    /// When it renewed its lease last.
    pub beat_at: SystemTime,
    /// Whether its lease is valid.
    pub alive: bool,
    /// How many lanes name it as their owner.
    pub lanes: u64,
    /// Its own figures, and when they were written.
    pub figures: Option<(SystemTime, RelayFigures)>,
    /// The figures of its sinks, by name, and when they were written.
    pub sinks: Vec<(String, SystemTime, SinkFigures)>,
}

impl RelayStatus {
    /// Adds a row of figures. Text in the format of another version is read as far as it is known.
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
