//! Counts the rows that a relay has in flight, for its monitor.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::{Beat, Monitor, Settled};

/// Counted by those who claim, publish and settle.
#[derive(Default)]
pub(super) struct Hand {
    monitor: Option<Arc<dyn Monitor>>,
    rows: AtomicUsize,
    /// When that was decided which is being written.
    writing: Mutex<Option<Instant>>,
}

impl Hand {
    pub(super) fn new(monitor: Option<Arc<dyn Monitor>>) -> Self {
        Self {
            monitor,
            ..Self::default()
        }
    }

    pub(super) fn claimed(&self, rows: usize) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub(super) fn writing(&self, decided_at: Instant) {
        *self.decided_at() = Some(decided_at);
    }

    /// Written, or given up: the rows are anybody's in both cases.
    pub(super) fn let_go(&self, rows: usize) {
        self.rows.fetch_sub(rows, Ordering::Relaxed);
        *self.decided_at() = None;
    }

    pub(super) fn settled(&self, settled: &Settled) {
        if let Some(monitor) = &self.monitor {
            monitor.settled(settled);
        }
    }

    pub(super) fn beat(&self, broker_down: bool, stopping: bool) {
        let Some(monitor) = &self.monitor else { return };
        let at = Instant::now();
        let decided_at = *self.decided_at();
        monitor.beat(&Beat {
            at,
            in_flight: self.rows.load(Ordering::Relaxed),
            broker_down,
            unsettled: decided_at.map(|decided_at| at - decided_at),
            stopping,
        });
    }

    fn decided_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
