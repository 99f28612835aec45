//! The first rung of the wake-up ladder: a poke inside the process.

use std::sync::Arc;

use tokio::sync::Notify;

/// Wakes a relay in the same process right after a commit, so that it need not wait for its next poll.
///
/// Clones share one bell. Losing a poke costs latency only: polling is the guarantee.
#[derive(Debug, Clone, Default)]
pub struct Waker(Arc<Notify>);

impl Waker {
    /// A bell that nobody listens to yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rings it. A ring that comes before [`Waker::woken`] is waited on is not lost.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Waits for a ring.
    pub async fn woken(&self) {
        self.0.notified().await;
    }
}
