//! `[relay]`: how the relay works.

use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_relay::Settings;
use serde::{Deserialize, Serialize};

use super::duration;

/// The relay's settings; [`Settings`] documents them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RelayConfig {
    #[serde(with = "duration")]
    lease: Duration,
    #[serde(with = "duration")]
    heartbeat: Duration,
    batch: usize,
    max_in_flight: usize,
    max_in_flight_bytes: usize,
    #[serde(with = "duration")]
    idle_time: Duration,
    #[serde(with = "duration")]
    due_interval: Duration,
    #[serde(with = "duration")]
    sweep: Duration,
    #[serde(with = "duration")]
    clean: Duration,
    /// Jobs whose lease ran out this long ago are reaped; `None`: not by the relay.
    #[serde(with = "duration::or_off")]
    pub(crate) reap_after: Option<Duration>,
    #[serde(with = "duration")]
    drain_timeout: Duration,
    crash_limit: u32,
}

impl Default for RelayConfig {
    fn default() -> Self {
        let Settings {
            lease,
            heartbeat,
            batch,
            max_in_flight,
            max_in_flight_bytes,
            idle_time,
            due_interval,
            sweep,
            clean,
            drain_timeout,
            crash_limit,
            seed: _,
        } = Settings::default();
        Self {
            lease,
            heartbeat,
            batch,
            max_in_flight,
            max_in_flight_bytes,
            idle_time,
            due_interval,
            sweep,
            clean,
            reap_after: None,
            drain_timeout,
            crash_limit,
        }
    }
}

impl RelayConfig {
    /// The settings of the relay.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            lease: self.lease,
            heartbeat: self.heartbeat,
            batch: self.batch,
            max_in_flight: self.max_in_flight,
            max_in_flight_bytes: self.max_in_flight_bytes,
            idle_time: self.idle_time,
            due_interval: self.due_interval,
            sweep: self.sweep,
            clean: self.clean,
            drain_timeout: self.drain_timeout,
            crash_limit: self.crash_limit,
            seed: None,
        }
    }

    /// Rejects values that make the relay spin or stop. An error comes with the name of its setting. The relay itself
    /// checks combinations of settings.
    pub(super) fn validate(&self) -> Result<(), (&'static str, Error)> {
        let is_zero = [
            ("lease", self.lease.is_zero()),
            ("heartbeat", self.heartbeat.is_zero()),
            ("batch", self.batch == 0),
            ("max_in_flight", self.max_in_flight == 0),
            ("max_in_flight_bytes", self.max_in_flight_bytes == 0),
            ("idle_time", self.idle_time.is_zero()),
            ("due_interval", self.due_interval.is_zero()),
            ("sweep", self.sweep.is_zero()),
            ("clean", self.clean.is_zero()),
            ("reap_after", self.reap_after.is_some_and(|after| after.is_zero())),
        ];
        match is_zero.into_iter().find(|(_, is_zero)| *is_zero) {
            None if self.crash_limit < 2 => {
                let error = Error::new(ErrorKind::Invalid, "crash_limit in [relay] is below 2")
                    .because(
                        "if a relay were killed for any other reason, the messages it worked on would become dead letters",
                    )
                    .next_step("use 2 or more, or remove the line for the default");
                Err(("crash_limit", error))
            }
            None => Ok(()),
            Some((key, _)) => {
                let error = Error::new(ErrorKind::Invalid, format!("{key} in [relay] cannot be 0"))
                    .because("the relay would run in a busy loop, or do nothing")
                    .next_step("use a value above 0, or remove the line for the default");
                Err((key, error))
            }
        }
    }
}
