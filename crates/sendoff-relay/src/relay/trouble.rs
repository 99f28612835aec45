//! Failed steps: when the relay tries them again, and what it logs.
//!
//! An outage of the store makes two log lines: one when it begins, one when it ends, with its duration. Other failures are
//! logged when they begin, and once per minute while they last. Every step waits longer after each failure.

use std::time::Duration;

use rustc_hash::FxHashMap;
use sendoff::{Error, ErrorKind};
use tokio::time::Instant;

use super::running::LONGEST_PAUSE;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// How often a lasting failure is logged.
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// Repeated calls to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Heartbeat,
    Evict,
    Acquire,
    Release,
    Disown,
    Read,
    Quarantined,
    ClearQuarantine,
    Pauses,
    Sweep,
    Recheck,
    Clean,
    Figures,
    Deregister,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Heartbeat => "heartbeat",
            Self::Evict => "evict",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::Disown => "disown",
            Self::Read => "read",
            Self::Quarantined => "quarantined",
            Self::ClearQuarantine => "clear_quarantine",
            Self::Pauses => "pauses",
            Self::Sweep => "sweep",
            Self::Recheck => "recheck",
            Self::Clean => "clean",
            Self::Figures => "figures",
            Self::Deregister => "deregister",
        }
    }

    /// Whether the relay depends on this step. The others are rare and do not show when an outage ends.
    fn is_vital(self) -> bool {
        matches!(self, Self::Heartbeat | Self::Read)
    }
}

struct Failing {
    pause: Duration,
    /// Not tried before.
    until: Instant,
    logged: Instant,
}

#[derive(Default)]
pub(super) struct Trouble {
    /// When the outage began.
    since: Option<Instant>,
    failing: FxHashMap<Step, Failing>,
}

impl Trouble {
    /// Whether a step may be tried.
    pub(super) fn allows(&self, step: Step, now: Instant) -> bool {
        self.failing.get(&step).is_none_or(|failing| now >= failing.until)
    }

    /// When a step that is due at `due` may be tried.
    pub(super) fn until(&self, step: Step, due: Instant) -> Instant {
        self.failing.get(&step).map_or(due, |failing| due.max(failing.until))
    }

    /// The earliest point in time at which a step may be tried again.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let ahead = self.failing.values().map(|failing| failing.until);
        ahead.filter(|until| *until > now).min()
    }

    /// A step failed. Returns when to try again.
    pub(super) fn failed(&mut self, step: Step, error: &Error, now: Instant) -> Instant {
        // Only vital steps report success: for the others, a failure long after the last one counts as new.
        let known = self.failing.get(&step).filter(|known| now < known.until + LOG_PAUSE);
        let pause = known.map_or(FIRST_PAUSE, |known| (known.pause * 2).min(LONGEST_PAUSE));
        let is_quiet = known.is_some_and(|known| now - known.logged < LOG_PAUSE);
        let mut logged = known.map_or(now, |known| known.logged);
        let step_name = step.name();
        if error.kind() == ErrorKind::Unreachable && (step.is_vital() || self.since.is_some()) {
            if self.since.is_none() {
                self.since = Some(now);
                tracing::warn!(
                    event = "store_down", step = step_name, %error,
                    "database unreachable; will retry"
                );
            } else {
                tracing::debug!(event = "step_failed", step = step_name, %error, "relay step failed; will retry");
            }
        } else if is_quiet {
            tracing::debug!(event = "step_failed", step = step_name, %error, "relay step failed; will retry");
        } else {
            tracing::warn!(event = "step_failed", step = step_name, %error, "relay step failed; will retry");
            logged = now;
        }
        let until = now + pause;
        self.failing.insert(step, Failing { pause, until, logged });
        until
    }

    /// A step that was begun at `begun` succeeded. Returns whether an outage is over.
    pub(super) fn succeeded(&mut self, step: Step, begun: Instant, now: Instant) -> bool {
        if self.failing.is_empty() {
            return false;
        }
        self.failing.remove(&step);
        let Some(since) = self.since else { return false };
        // A step that was under way when the outage began does not show that it is over.
        if begun <= since || !step.is_vital() || self.failing.keys().any(|step| step.is_vital()) {
            return false;
        }
        let outage = now - since;
        tracing::info!(
            event = "store_up",
            down_ms = outage.as_millis() as u64,
            "database is reachable again"
        );
        *self = Self::default();
        true
    }

    /// All lanes are lost: nothing is read until there are new ones.
    pub(super) fn forget_reads(&mut self) {
        self.failing.remove(&Step::Read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone() -> Error {
        Error::new(ErrorKind::Unreachable, "no connection")
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_and_an_outage_ends_with_a_call_that_began_in_it() {
        let mut trouble = Trouble::default();
        let began = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let now = Instant::now();
            let until = trouble.failed(Step::Heartbeat, &gone(), now);
            assert!(!trouble.allows(Step::Heartbeat, now) && trouble.allows(Step::Read, now));
            pauses.push(until - now);
            tokio::time::advance(until - now).await;
            assert!(trouble.allows(Step::Heartbeat, Instant::now()));
        }
        assert_eq!(pauses[..2], [FIRST_PAUSE, FIRST_PAUSE * 2]);
        assert_eq!(*pauses.last().unwrap(), LONGEST_PAUSE);
        let now = Instant::now();
        trouble.failed(Step::Read, &gone(), now);
        assert!(
            !trouble.succeeded(Step::Heartbeat, began, now),
            "it was under way before"
        );
        assert!(!trouble.succeeded(Step::Heartbeat, now, now), "reading still fails");
        assert!(trouble.succeeded(Step::Read, now, now));
        assert!(trouble.allows(Step::Read, now) && trouble.next(now).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_long_after_another_is_a_new_one() {
        let mut trouble = Trouble::default();
        for _ in 0..8 {
            trouble.failed(Step::Release, &gone(), Instant::now());
        }
        tokio::time::advance(LOG_PAUSE * 2).await;
        let now = Instant::now();
        assert_eq!(trouble.failed(Step::Release, &gone(), now) - now, FIRST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_is_refused_is_no_outage() {
        let mut trouble = Trouble::default();
        let now = Instant::now();
        trouble.failed(Step::Clean, &Error::new(ErrorKind::Denied, "not allowed"), now);
        assert!(trouble.since.is_none() && trouble.next(now).is_some());
        assert!(!trouble.succeeded(Step::Clean, now, now));
        assert!(trouble.next(now).is_none());
    }
}
