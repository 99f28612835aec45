//! Durations as the tables keep them: microseconds. Points in time are microseconds since the epoch.

use std::time::Duration;

pub(crate) use sendoff::columns::{micros as from_time, time_at as to_time};

/// A duration in microseconds; one that is too long becomes the longest.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
