//! Health reports of the relay for observers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sendoff::store::SettleReport;
use tokio::time::Instant;

use super::running::Running;
use crate::observe::{Claimed, RelayHealth, SettledBatch, WakeSource};

/// How often observers get a report.
const RELAY_HEALTH: Duration = Duration::from_millis(250);

/// State for observers only: no decision depends on it.
pub(super) struct Watched {
    next: Option<Instant>,
    progress: Progress,
    /// When the last read succeeded.
    read: Option<Instant>,
    settle_begun: Instant,
    /// Whether emitters in this process have the relay's wake source.
    wakes_in_process: bool,
    pub(super) listening: Arc<AtomicBool>,
    pub(super) relays: usize,
}

/// How far the relay is with the lanes that it holds.
#[derive(Default)]
struct Progress {
    /// When the last read began that emptied the ready table.
    caught_up: Option<Instant>,
    /// Since when results wait to be written, and since when those wait that are being written.
    unsettled: Option<Instant>,
    settling: Option<Instant>,
}

impl Watched {
    /// Without an observer there are no health reports.
    pub(super) fn new(now: Instant, observed: bool, wakes_in_process: bool) -> Self {
        Self {
            next: observed.then_some(now),
            progress: Progress::default(),
            read: None,
            settle_begun: now,
            wakes_in_process,
            listening: Arc::default(),
            relays: 0,
        }
    }

    /// When the next health report is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// A read that began at `begun` has ended; `all`: it left nothing in the ready table. Returns when its rows
    /// were claimed.
    pub(super) fn read(&mut self, begun: Instant, now: Instant, all: bool) -> Claimed {
        let claimed = Claimed {
            at: now,
            caught_up: self.progress.caught_up,
        };
        self.read = Some(now);
        if all {
            self.progress.caught_up = Some(begun);
        }
        claimed
    }

    /// Whether all ready messages were read since lanes were last gained.
    pub(super) fn has_caught_up(&self) -> bool {
        self.progress.caught_up.is_some()
    }

    /// Lanes were gained; their ready messages are unknown.
    pub(super) fn behind(&mut self) {
        self.progress.caught_up = None;
    }

    /// All lanes are lost, with their results.
    pub(super) fn start_anew(&mut self) {
        self.progress = Progress::default();
    }

    /// There may be new results.
    pub(super) fn decided(&mut self, waiting: bool, now: Instant) {
        if waiting && self.progress.unsettled.is_none() {
            self.progress.unsettled = Some(now);
        }
    }

    /// The results are being written.
    pub(super) fn settling(&mut self, all: bool, now: Instant) {
        self.progress.settling = self.progress.unsettled;
        self.settle_begun = now;
        if all {
            self.progress.unsettled = None;
        }
    }

    fn settled(&mut self, rows: usize, report: &SettleReport, now: Instant) -> SettledBatch {
        let since = self.progress.settling.take().unwrap_or(self.settle_begun);
        SettledBatch {
            rows,
            lost: report.lost.len(),
            took: now - self.settle_begun,
            lag: now - since,
        }
    }
}

impl Running {
    pub(super) fn tell_settled(&mut self, rows: usize, report: &SettleReport) {
        let settled = self.watched.settled(rows, report, Instant::now());
        let hooks = self.dispatcher.hooks();
        hooks.observe("settled", |observer| observer.settled(&settled));
    }

    pub(super) fn tell_health(&mut self, now: Instant) {
        if self.watched.next.is_none_or(|next| now < next) {
            return;
        }
        self.watched.next = Some(now + RELAY_HEALTH);
        let hooks = self.dispatcher.hooks();
        let watched = &self.watched;
        let wake_source = match (watched.wakes_in_process, watched.listening.load(Ordering::Relaxed)) {
            (_, true) => WakeSource::Listen,
            (true, false) => WakeSource::InProcess,
            (false, false) => WakeSource::Poll,
        };
        let oldest = watched
            .progress
            .settling
            .into_iter()
            .chain(watched.progress.unsettled)
            .min();
        let relay_health = RelayHealth {
            at: now,
            lanes: self.dispatcher.lane_loads(),
            in_flight: self.dispatcher.in_flight(),
            bytes_in_flight: self.dispatcher.bytes_in_flight(),
            sinks: self.dispatcher.sink_health(),
            wake_source,
            relays: watched.relays,
            unsettled: oldest.map(|since| now - since),
            read: watched.read,
            stopping: self.ending.stopping.is_some(),
            hooks: hooks.counts.read(),
        };
        hooks.observe("relay_health", |observer| observer.relay_health(&relay_health));
    }
}
