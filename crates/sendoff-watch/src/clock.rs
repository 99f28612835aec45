//! The database's time. Measurements use it because the clocks of hosts may be wrong.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// A point in time on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    here: Instant,
    /// Microseconds since the epoch.
    there: i64,
}

impl Clock {
    /// The database answered `now` to a query that ran from `asked` to `answered`.
    pub(crate) fn new(asked: Instant, answered: Instant, now: SystemTime) -> Self {
        Self {
            here: asked + (answered - asked) / 2,
            there: micros(now),
        }
    }

    /// An instant of this process on the database's clock, in microseconds since the epoch.
    pub(crate) fn at(&self, moment: Instant) -> i64 {
        match moment.checked_duration_since(self.here) {
            Some(later) => self.there.saturating_add(span(later)),
            None => self.there.saturating_sub(span(self.here - moment)),
        }
    }
}

/// Microseconds since the epoch.
pub(crate) fn micros(at: SystemTime) -> i64 {
    match at.duration_since(UNIX_EPOCH) {
        Ok(after) => span(after),
        Err(before) => -span(before.duration()),
    }
}

fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_before_and_after_are_known_by_the_databases_clock() {
        let here = Instant::now();
        let then = UNIX_EPOCH + Duration::from_secs(1_000);
        let clock = Clock::new(here, here + Duration::from_millis(20), then);
        assert_eq!(clock.at(here + Duration::from_millis(10)), 1_000_000_000);
        assert_eq!(clock.at(here + Duration::from_millis(25)), 1_000_015_000);
        assert_eq!(clock.at(here), 999_990_000);
    }
}
