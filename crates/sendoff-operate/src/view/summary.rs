//! The outbox at a glance.

use sendoff::store::Summary;
use serde::Serialize;

/// How many messages are where.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SummaryView {
    /// All that there are: pending, failed, dead and delivered.
    pub total: u64,
    /// Ready or waiting, and never failed.
    pub pending: u64,
    /// Ready now.
    pub ready: u64,
    /// Waiting: scheduled, backing off, held, or for a sink that is down.
    pub waiting: u64,
    /// Of the waiting: those with failed attempts.
    pub failed: u64,
    /// Dead letters.
    pub dead: u64,
    /// Delivered messages that are kept.
    pub delivered: u64,
    /// For how many seconds the oldest ready message has been there.
    pub oldest_ready_seconds: Option<f64>,
    /// For how many seconds the oldest pending message has been there; those whose time has not come do not count.
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
