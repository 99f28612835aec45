//! What an observer is told about the relay as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sendoff::store::SettleReport;
use tokio::time::Instant;

use super::running::Running;
use crate::observe::{Claimed, Pulse, SettledBatch, WakeRung};

/// How often an observer is told.
const PULSE: Duration = Duration::from_millis(250);

/// What is kept for an observer only: nothing is decided by it.
pub(super) struct Watched {
    next: Option<Instant>,
    /// When the last read began that found all there was to read in the ready table.
    caught_up: Option<Instant>,
    /// When the last read ended well.
    read: Option<Instant>,
    /// Since when decisions wait to be written, and since when the ones wait that are being written.
    unsettled: Option<Instant>,
    settling: Option<Instant>,
    settle_begun: Instant,
    /// Whether emitters in this process were given the relay's bell.
    poked: bool,
    pub(super) listening: Arc<AtomicBool>,
    pub(super) relays: usize,
}

impl Watched {
    /// Without an observer there are no pulses.
    pub(super) fn new(now: Instant, observed: bool, poked: bool) -> Self {
        Self {
            next: observed.then_some(now),
            caught_up: None,
            read: None,
            unsettled: None,
            settling: None,
            settle_begun: now,
            poked,
            listening: Arc::default(),
            relays: 0,
        }
    }

    /// When the next pulse is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// A read that began at `begun` has ended; `all`: it left nothing in the ready table. Tells when its rows were
    /// claimed.
    pub(super) fn read(&mut self, begun: Instant, now: Instant, all: bool) -> Claimed {
        let claimed = Claimed {
            at: now,
            caught_up: self.caught_up,
        };
        self.read = Some(now);
        if all {
            self.caught_up = Some(begun);
        }
        claimed
    }

    /// Whether all that was ready was read since lanes were last gained.
    pub(super) fn has_caught_up(&self) -> bool {
        self.caught_up.is_some()
    }

    /// Lanes were gained, of which nothing is known.
    pub(super) fn behind(&mut self) {
        self.caught_up = None;
    }

    /// All lanes are lost, and what was decided with them.
    pub(super) fn anew(&mut self) {
        (self.caught_up, self.unsettled, self.settling) = (None, None, None);
    }

    /// Decisions may have been made.
    pub(super) fn decided(&mut self, waiting: bool, now: Instant) {
        if waiting && self.unsettled.is_none() {
            self.unsettled = Some(now);
        }
    }

    /// They are being written.
    pub(super) fn settling(&mut self, all: bool, now: Instant) {
        self.settling = self.unsettled;
        self.settle_begun = now;
        if all {
            self.unsettled = None;
        }
    }

    fn settled(&mut self, rows: usize, report: &SettleReport, now: Instant) -> SettledBatch {
        let since = self.settling.take().unwrap_or(self.settle_begun);
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
        let hooks = self.desk.hooks();
        if let Some(observer) = &hooks.observer {
            hooks.guarded("settled", || observer.settled(&settled));
        }
    }

    pub(super) fn tell_pulse(&mut self, now: Instant) {
        if self.watched.next.is_none_or(|next| now < next) {
            return;
        }
        self.watched.next = Some(now + PULSE);
        let hooks = self.desk.hooks();
        let Some(observer) = &hooks.observer else { return };
        let watched = &self.watched;
        let rung = match (watched.poked, watched.listening.load(Ordering::Relaxed)) {
            (_, true) => WakeRung::Listen,
            (true, false) => WakeRung::Poke,
            (false, false) => WakeRung::Poll,
        };
        let oldest = watched.settling.into_iter().chain(watched.unsettled).min();
        let pulse = Pulse {
            at: now,
            lanes: self.desk.lane_loads(),
            in_hand: self.desk.in_hand(),
            bytes_in_hand: self.desk.bytes_in_hand(),
            sinks: self.desk.sink_pulses(),
            rung,
            relays: watched.relays,
            unsettled: oldest.map(|since| now - since),
            read: watched.read,
            stopping: self.stopping.is_some(),
            hooks: hooks.counts.read(),
        };
        hooks.guarded("pulse", || observer.pulse(&pulse));
    }
}
