//! The delay before the next attempt.

use std::time::Duration;

/// Computes delays between attempts: `min(max, base · multiplier^attempts) + jitter`, where `attempts` counts the
/// attempts that failed before this one.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// The delay after the first failure.
    pub base: Duration,
    /// The factor by which the delay grows with every further failure.
    pub multiplier: f64,
    /// The longest delay, before jitter.
    pub max: Duration,
    /// The largest random part of a delay, as a fraction of the delay. It spreads retries over time.
    pub jitter: f64,
    /// The number of attempts after which a delivery is dead, unless the message has its own limit.
    pub attempts: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(60),
            multiplier: 2.0,
            max: Duration::from_secs(3600),
            jitter: 0.1,
            attempts: 5,
        }
    }
}

impl RetryPolicy {
    /// The delay after a failure. `failed_before` is the number of attempts that failed before it.
    pub fn delay(&self, failed_before: u32, rng: &mut fastrand::Rng) -> Duration {
        let exponent = i32::try_from(failed_before).unwrap_or(i32::MAX);
        let grown = self.base.as_secs_f64() * self.multiplier.max(0.0).powi(exponent);
        // The product may be infinite, or not a number for a base of zero.
        let capped = if grown.is_nan() {
            0.0
        } else {
            grown.min(self.max.as_secs_f64())
        };
        let jitter = capped * self.jitter.clamp(0.0, 1.0) * rng.f64();
        Duration::try_from_secs_f64(capped + jitter).unwrap_or(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_plus_at_most_a_tenth() {
        let mut rng = fastrand::Rng::with_seed(7);
        let policy = RetryPolicy::default();
        for (failed_before, seconds) in [
            (0, 60.0),
            (1, 120.0),
            (2, 240.0),
            (5, 1920.0),
            (6, 3600.0),
            (4_000_000_000, 3600.0),
        ] {
            let delay = policy.delay(failed_before, &mut rng).as_secs_f64();
            assert!((seconds..=seconds * 1.1).contains(&delay), "{failed_before}: {delay}");
        }
    }

    #[test]
    fn odd_numbers_in_the_config_do_not_panic() {
        let mut rng = fastrand::Rng::with_seed(7);
        for multiplier in [0.0, -3.0, f64::NAN, f64::INFINITY] {
            let policy = RetryPolicy {
                base: Duration::ZERO,
                multiplier,
                jitter: f64::NAN,
                ..RetryPolicy::default()
            };
            assert!(policy.delay(3, &mut rng) <= policy.max);
        }
    }
}
