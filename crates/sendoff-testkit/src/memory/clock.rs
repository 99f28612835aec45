//! The clock of the store: the only one that decides.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Microseconds since the epoch: how fine databases keep time.
pub(super) type Micros = i64;

/// A wall clock that runs with tokio's, so that pausing tokio pauses it.
pub(super) struct Clock {
    began: Micros,
    origin: Mutex<Origin>,
}

#[derive(Default)]
struct Origin {
    /// Tokio's clock can be read inside a runtime only, so it starts to count when it is first read.
    started: Option<Instant>,
    shift: Micros,
}

impl Clock {
    pub(super) fn new(began: SystemTime) -> Self {
        Self {
            began: micros(began),
            origin: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Micros {
        let mut origin = self.origin();
        let started = *origin.started.get_or_insert_with(Instant::now);
        self.began + span(started.elapsed()) + origin.shift
    }

    /// What time it would be if nobody had set the clock.
    #[cfg_attr(not(feature = "planted"), allow(dead_code, reason = "a bug on purpose wants it"))]
    pub(super) fn of_host(&self) -> Micros {
        self.now() - self.origin().shift
    }

    pub(super) fn shift(&self, by: Duration) {
        self.origin().shift += span(by);
    }

    pub(super) fn shift_back(&self, by: Duration) {
        self.origin().shift -= span(by);
    }

    fn origin(&self) -> std::sync::MutexGuard<'_, Origin> {
        self.origin.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

pub(super) fn span(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}

pub(super) fn micros(at: SystemTime) -> Micros {
    at.duration_since(UNIX_EPOCH)
        .map_or_else(|before| -span(before.duration()), span)
}

pub(super) fn time(at: Micros) -> SystemTime {
    let distance = Duration::from_micros(at.unsigned_abs());
    if at < 0 {
        UNIX_EPOCH - distance
    } else {
        UNIX_EPOCH + distance
    }
}

/// RFC 3339 in UTC, as the history of a message writes it.
pub(super) fn rfc3339(at: Micros) -> String {
    jiff::Timestamp::from_microsecond(at).map_or_else(|_| at.to_string(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_runs_with_tokios_and_can_be_shifted() {
        let clock = Clock::new(UNIX_EPOCH + Duration::from_secs(10));
        assert_eq!(clock.now(), 10_000_000);
        tokio::time::advance(Duration::from_millis(5)).await;
        assert_eq!(clock.now(), 10_005_000);
        clock.shift(Duration::from_secs(1));
        assert_eq!(clock.now(), 11_005_000);
        assert_eq!(rfc3339(clock.now()), "1970-01-01T00:00:11.005Z");
    }
}
