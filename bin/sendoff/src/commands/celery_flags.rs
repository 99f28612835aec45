//! The flags that `sendoff celery-relay` shares with `manage.py celery_outbox_relay`, under its names. The defaults
//! come from [`Settings`].

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sendoff_store_django_celery::Settings;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Flags {
    /// Number of rows per claim
    #[arg(long, default_value_t = Settings::default().batch_size, value_name = "ROWS")]
    batch_size: u32,
    /// Longest pause after a poll that found less than a batch
    #[arg(long, default_value_t = Settings::default().idle_time.into(), value_name = "SECONDS")]
    idle_time: Seconds,
    /// Delay after the first failure; doubles with every further failure
    #[arg(long, default_value_t = Settings::default().backoff_time.into(), value_name = "SECONDS")]
    backoff_time: Seconds,
    /// Number of attempts before a task becomes a dead letter
    #[arg(long, default_value_t = Settings::default().max_retries, value_name = "ATTEMPTS")]
    max_retries: u16,
    /// Number of batches sent at the same time; above 1, tasks may overtake each other
    #[arg(long, default_value_t = Settings::default().publish_concurrency, value_name = "BATCHES")]
    publish_concurrency: usize,
    /// How often rows are counted, for the log and metrics
    #[arg(long, default_value_t = Settings::default().queue_snapshot_refresh.into(), value_name = "SECONDS")]
    queue_snapshot_refresh_seconds: Seconds,
    /// Claim rows again that a relay claimed this long ago and did not settle
    #[arg(long, default_value_t = Settings::default().stale_timeout.into(), value_name = "SECONDS")]
    stale_timeout_seconds: Seconds,
    /// Minimum time to wait for the broker to confirm a batch; RabbitMQ settings can extend it
    #[arg(long, default_value_t = Settings::default().send_timeout.into(), value_name = "SECONDS")]
    send_timeout: Seconds,
    /// How long a stopping relay waits for the broker to confirm tasks
    #[arg(long, default_value_t = Settings::default().shutdown_timeout.into(), value_name = "SECONDS")]
    shutdown_timeout: Seconds,
    /// How long rows wait after the broker was found down
    #[arg(long, default_value_t = Settings::default().broker_outage_cooldown.into(), value_name = "SECONDS")]
    broker_outage_cooldown: Seconds,
    /// Longest delay after a failure
    #[arg(long, default_value_t = Settings::default().max_backoff.into(), value_name = "SECONDS")]
    max_backoff: Seconds,
    /// File to touch while the relay makes progress
    #[arg(long, value_name = "FILE")]
    liveness_file: Option<PathBuf>,
}

impl Flags {
    /// The settings of the relay.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            batch_size: self.batch_size,
            idle_time: self.idle_time.0,
            backoff_time: self.backoff_time.0,
            max_retries: self.max_retries,
            publish_concurrency: self.publish_concurrency,
            queue_snapshot_refresh: self.queue_snapshot_refresh_seconds.0,
            stale_timeout: self.stale_timeout_seconds.0,
            send_timeout: self.send_timeout.0,
            shutdown_timeout: self.shutdown_timeout.0,
            broker_outage_cooldown: self.broker_outage_cooldown.0,
            max_backoff: self.max_backoff.0,
            liveness_file: self.liveness_file.clone(),
            dead_letter_retention: None,
        }
    }
}

/// A duration as a number of seconds, like the flags of the Python relay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seconds(pub(super) Duration);

impl From<Duration> for Seconds {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_secs_f64().fmt(f)
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds: f64 = text
            .parse()
            .map_err(|_| "give a number of seconds, such as 1.5".to_owned())?;
        let duration = Duration::try_from_secs_f64(seconds);
        duration
            .map(Self)
            .map_err(|_| "give a number of seconds that is not negative".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    fn read(args: &[&str]) -> Settings {
        let line = Line::try_parse_from([&["celery-relay"], args].concat());
        line.unwrap_or_else(|error| panic!("{error}")).flags.settings()
    }

    #[test]
    fn without_a_flag_the_settings_are_the_usual_ones() {
        assert_eq!(read(&[]), Settings::default());
    }

    #[test]
    fn every_flag_reaches_its_setting() {
        let seconds = Duration::from_secs;
        let read = read(&[
            "--batch-size=1",
            "--idle-time=0.5",
            "--backoff-time=2",
            "--max-retries=3",
            "--publish-concurrency=4",
            "--queue-snapshot-refresh-seconds=5.5",
            "--stale-timeout-seconds=600",
            "--send-timeout=7",
            "--shutdown-timeout=8",
            "--broker-outage-cooldown=9",
            "--max-backoff=10",
            "--liveness-file=alive",
        ]);
        let expected = Settings {
            batch_size: 1,
            idle_time: Duration::from_millis(500),
            backoff_time: seconds(2),
            max_retries: 3,
            publish_concurrency: 4,
            queue_snapshot_refresh: Duration::from_millis(5500),
            stale_timeout: seconds(600),
            send_timeout: seconds(7),
            shutdown_timeout: seconds(8),
            broker_outage_cooldown: seconds(9),
            max_backoff: seconds(10),
            liveness_file: Some("alive".into()),
            dead_letter_retention: None,
        };
        assert_eq!(read, expected);
    }
}
