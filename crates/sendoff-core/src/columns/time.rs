//! Points in time as numbers: microseconds since the epoch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds since the epoch, the format of points in time in all emit statements. A time that is too far away becomes
/// the farthest.
pub fn micros(at: SystemTime) -> i64 {
    let clamp = |distance: Duration| i64::try_from(distance.as_micros()).unwrap_or(i64::MAX);
    at.duration_since(UNIX_EPOCH)
        .map_or_else(|before| -clamp(before.duration()), clamp)
}

/// The point in time of such a number; the epoch if this host has no such time.
pub fn time_at(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    let time = if micros < 0 {
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
            assert_eq!(micros(time_at(at)), at);
        }
    }

    #[test]
    fn times_before_the_epoch_do_not_panic() {
        assert_eq!(micros(UNIX_EPOCH - Duration::from_secs(1)), -1_000_000);
        assert_eq!(micros(UNIX_EPOCH + Duration::from_micros(7)), 7);
    }
}
