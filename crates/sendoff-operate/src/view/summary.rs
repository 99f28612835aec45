//! The number of messages and deliveries in each state.

use sendoff::store::Summary;
use serde::Serialize;

/// The numbers of messages and deliveries by state. A *line* is a line of a list: a delivery, or a message that is not
/// routed yet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SummaryView {
    /// The number of all lines: pending, failed, dead and delivered.
    pub total: u64,
    /// The number of lines that are ready or waiting, and never failed. This includes scheduled, blocked and deferred
    /// ones.
    pub pending: u64,
    /// The number of messages that are ready now.
    pub ready: u64,
    /// The number of lines that wait: scheduled, in retry, blocked, or deferred.
    pub waiting: u64,
    /// The number of waiting deliveries with failed attempts.
    pub failed: u64,
    /// The number of dead letters: deliveries, or messages that could not be routed.
    pub dead: u64,
    /// The number of delivered deliveries that are kept.
    pub delivered: u64,
    /// The age of the oldest ready message in seconds.
    pub oldest_ready_seconds: Option<f64>,
    /// The age of the oldest pending message in seconds. Scheduled messages that are not due do not count.
    pub oldest_pending_seconds: Option<f64>,
}

impl From<Summary> for SummaryView {
    fn from(summary: Summary) -> Self {
        let undelivered = summary.ready + summary.waiting;
        Self {
            total: undelivered + summary.dead + summary.delivered,
            pending: undelivered.saturating_sub(summary.failed),
            ready: summary.ready,
            waiting: summary.waiting,
            failed: summary.failed,
            dead: summary.dead,
            delivered: summary.delivered,
            oldest_ready_seconds: summary.oldest_ready.map(|age| age.as_secs_f64()),
            oldest_pending_seconds: summary.oldest_pending.map(|age| age.as_secs_f64()),
        }
    }
}
