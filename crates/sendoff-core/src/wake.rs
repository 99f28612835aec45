//! Wakes a relay in the same process.

use std::sync::Arc;

use tokio::sync::Notify;

/// Wakes a relay in the same process right after a commit, so that it does not wait for its next poll.
///
/// Clones share one wake source. A lost wake-up only costs latency, because the relay also polls.
#[derive(Debug, Clone, Default)]
pub struct Waker(Arc<Notify>);

impl Waker {
    /// A new wake source.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the relay. A call before [`Waker::woken`] is awaited is not lost.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Waits for a wake-up.
    pub async fn woken(&self) {
        self.0.notified().await;
    }
}
