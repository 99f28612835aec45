//! Decides what a read requests next, until its rows can be returned. It does no I/O: the reader sends the requests.

use std::time::Duration;

use tokio::time::Instant;

use crate::lanes::{Lanes, Plan};
use crate::straggler::{Floors, Judgement, Sighting};

/// Everything is read from the beginning this often, whatever the floors say: the safety net.
const FULL_SWEEP_EVERY: Duration = Duration::from_secs(300);

/// What one reader has read so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) lanes: Lanes,
    floors: Floors,
    swept: Option<Instant>,
}

/// One call of the reader: mostly one question to the server, now and then two.
#[derive(Debug)]
pub(crate) struct Attempt {
    now: Instant,
    start: i64,
}

/// What is to be done with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weighed {
    /// Its rows are good.
    Use,
    /// Its rows are not to be used: ask again.
    AskAgain,
    /// It is of another history than what was read before. All of that is void.
    HistoryChanged,
}

impl Progress {
    /// A new call.
    pub(crate) fn begin(&mut self, now: Instant) -> Attempt {
        let swept = *self.swept.get_or_insert(now);
        let sweep = now.duration_since(swept) >= FULL_SWEEP_EVERY;
        if sweep {
            self.swept = Some(now);
        }
        let start = if sweep { 0 } else { self.floors.floor() };
        Attempt { now, start }
    }

    /// What to ask for, and whether to take a transaction id with it.
    pub(crate) fn plan(&mut self, attempt: &Attempt, limit: usize) -> (Plan, bool) {
        (
            self.lanes.plan(attempt.start, limit),
            self.floors.wants_mark(attempt.now),
        )
    }

    /// Weighs an answer; the reasons are in `straggler.rs`.
    pub(crate) fn weigh(&mut self, attempt: &mut Attempt, sighting: &Sighting) -> Weighed {
        let judgement = self.floors.judge(sighting, attempt.start);
        if judgement == Judgement::Restart {
            self.restart();
            self.floors.forget_history();
            return Weighed::HistoryChanged;
        }
        self.floors.note(attempt.now, sighting);
        if let Judgement::ReadFrom(start) = judgement {
            attempt.start = start;
            return Weighed::AskAgain;
        }
        self.floors.advance(attempt.now, &sighting.snapshot);
        Weighed::Use
    }

    /// Forgets how far was read, not what is in flight: the server may have forgotten something.
    pub(crate) fn restart(&mut self) {
        self.floors = self.floors.restarted();
        self.lanes.rewind();
        self.swept = None;
    }
}

#[cfg(test)]
mod tests;
