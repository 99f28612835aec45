//! The settings of the relay. They have the names and the defaults of the Python relay's flags.

use std::path::PathBuf;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};

/// Settings of a [`crate::DjangoRelay`].
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The number of rows per claim.
    pub batch_size: u32,
    /// The longest pause after a poll that found less than a batch.
    pub idle_time: Duration,
    /// The delay after the first failure; it doubles with every further failure.
    pub backoff_time: Duration,
    /// The number of attempts before a task becomes a dead letter.
    pub max_retries: u16,
    /// The number of batches sent at the same time. Above 1, tasks may overtake each other.
    pub publish_concurrency: usize,
    /// How often rows are counted, for the log and metrics.
    pub queue_snapshot_refresh: Duration,
    /// After this time, rows that a relay claimed and did not settle are claimed again.
    pub stale_timeout: Duration,
    /// The minimum time to wait for the broker to confirm a batch. RabbitMQ settings can extend it.
    pub send_timeout: Duration,
    /// How long a stopping relay waits for the broker.
    pub shutdown_timeout: Duration,
    /// How long rows wait after the broker was found down, and the longest pause between two checks of the broker.
    pub broker_outage_cooldown: Duration,
    /// The longest delay after a failure.
    pub max_backoff: Duration,
    /// The file to touch while the relay makes progress.
    pub liveness_file: Option<PathBuf>,
    /// How long dead letters are kept; `None`: no limit.
    pub dead_letter_retention: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            batch_size: 100,
            idle_time: Duration::from_secs(1),
            backoff_time: Duration::from_secs(120),
            max_retries: 5,
            publish_concurrency: 1,
            queue_snapshot_refresh: Duration::from_secs(5),
            stale_timeout: Duration::from_secs(300),
            send_timeout: Duration::from_secs(10),
            shutdown_timeout: Duration::from_secs(30),
            broker_outage_cooldown: Duration::from_secs(30),
            max_backoff: Duration::from_secs(3600),
            liveness_file: None,
            dead_letter_retention: None,
        }
    }
}

impl Settings {
    /// Checks that the settings can be used.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] that names the one that cannot.
    pub fn validate(&self) -> Result<()> {
        let zero = |name: &str| {
            Err(Error::new(ErrorKind::Invalid, format!("{name} cannot be 0")).next_step("set a larger value"))
        };
        for (name, is_zero) in [
            ("batch_size", self.batch_size == 0),
            ("backoff_time", self.backoff_time.is_zero()),
            ("max_retries", self.max_retries == 0),
            ("publish_concurrency", self.publish_concurrency == 0),
            ("queue_snapshot_refresh_seconds", self.queue_snapshot_refresh.is_zero()),
            ("stale_timeout_seconds", self.stale_timeout.is_zero()),
            ("send_timeout", self.send_timeout.is_zero()),
            ("shutdown_timeout", self.shutdown_timeout.is_zero()),
            ("broker_outage_cooldown", self.broker_outage_cooldown.is_zero()),
            ("max_backoff", self.max_backoff.is_zero()),
        ] {
            if is_zero {
                return zero(name);
            }
        }
        if self.stale_timeout <= self.send_timeout {
            return Err(Error::new(ErrorKind::Invalid, "stale_timeout_seconds is too short")
                .because("rows would be claimed again while the broker may still confirm them within send_timeout")
                .next_step("set stale_timeout_seconds to a multiple of send_timeout"));
        }
        Ok(())
    }

    /// The delay after a failure, computed as the Python relay does. `retries` is the number of attempts that had
    /// failed before it.
    pub fn delay(&self, retries: u16, rng: &mut fastrand::Rng) -> Duration {
        let base = self.backoff_time.as_secs_f64();
        let delay = base * 2_f64.powi(retries.into()) + base * 0.1 * rng.f64();
        Duration::try_from_secs_f64(delay).map_or(self.max_backoff, |delay| delay.min(self.max_backoff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_end_at_the_longest_with_their_jitter() {
        let mut rng = fastrand::Rng::with_seed(3);
        let settings = Settings::default();
        for (retries, least, most) in [
            (0, 120.0, 132.0),
            (1, 240.0, 252.0),
            (3, 960.0, 972.0),
            (4, 1920.0, 1932.0),
            (5, 3600.0, 3600.0),
            (u16::MAX, 3600.0, 3600.0),
        ] {
            let delay = settings.delay(retries, &mut rng).as_secs_f64();
            assert!((least..=most).contains(&delay), "{retries}: {delay}");
        }
    }

    #[test]
    fn what_cannot_work_is_named() {
        let default = Settings::default();
        assert!(default.validate().is_ok());
        let bad = [
            Settings {
                batch_size: 0,
                ..default.clone()
            },
            Settings {
                max_retries: 0,
                ..default.clone()
            },
            Settings {
                send_timeout: Duration::ZERO,
                ..default.clone()
            },
            Settings {
                stale_timeout: Duration::from_secs(10),
                ..default
            },
        ];
        for (settings, name) in bad
            .into_iter()
            .zip(["batch_size", "max_retries", "send_timeout", "stale_timeout"])
        {
            assert!(settings.validate().unwrap_err().to_string().contains(name));
        }
    }
}
