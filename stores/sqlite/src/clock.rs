//! Points in time as the tables keep them: microseconds since the epoch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A duration in microseconds; one that is too long becomes the longest.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A point in time as a table keeps it.
pub(crate) fn from_time(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH)
        .map_or_else(|before| -micros(before.duration()), micros)
}

/// A point in time out of a table.
pub(crate) fn to_time(at: i64) -> SystemTime {
    let distance = Duration::from_micros(at.unsigned_abs());
    let time = if at < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_table() {
        for at in [0, 1, -1, 1_790_000_000_123_456, i64::MAX, i64::MIN + 1] {
            assert_eq!(from_time(to_time(at)), at);
        }
    }
}
