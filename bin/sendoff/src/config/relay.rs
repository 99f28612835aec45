//! `[relay]`: how the relay works.

use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_relay::Settings;
use serde::{Deserialize, Serialize};

use super::duration;

/// The relay's settings; what they mean is said at [`Settings`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RelayConfig {
    #[serde(with = "duration")]
    lease: Duration,
    #[serde(with = "duration")]
    heartbeat: Duration,
    batch: usize,
    window: usize,
    window_bytes: usize,
    #[serde(with = "duration")]
    idle_time: Duration,
    #[serde(with = "duration")]
    due_interval: Duration,
    #[serde(with = "duration")]
    sweep: Duration,
    #[serde(with = "duration")]
    clean: Duration,
    /// Items whose worker has not renewed them for so long are taken from it; `None`: only by hand.
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
            window,
            window_bytes,
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
            window,
            window_bytes,
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
    /// As the relay takes them.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            lease: self.lease,
            heartbeat: self.heartbeat,
            batch: self.batch,
            window: self.window,
            window_bytes: self.window_bytes,
            idle_time: self.idle_time,
            due_interval: self.due_interval,
            sweep: self.sweep,
            clean: self.clean,
            drain_timeout: self.drain_timeout,
            crash_limit: self.crash_limit,
            seed: None,
        }
    }

    /// What would make the relay spin or stand still. An error comes with the setting that it is about; how the settings
    /// go together is checked by the relay itself.
    pub(super) fn validate(&self) -> Result<(), (&'static str, Error)> {
        let is_zero = [
            ("lease", self.lease.is_zero()),
            ("heartbeat", self.heartbeat.is_zero()),
            ("batch", self.batch == 0),
            ("window", self.window == 0),
            ("window_bytes", self.window_bytes == 0),
            ("idle_time", self.idle_time.is_zero()),
            ("due_interval", self.due_interval.is_zero()),
            ("sweep", self.sweep.is_zero()),
            ("clean", self.clean.is_zero()),
            ("reap_after", self.reap_after.is_some_and(|after| after.is_zero())),
            ("crash_limit", self.crash_limit == 0),
        ];
        match is_zero.into_iter().find(|(_, is_zero)| *is_zero) {
            None => Ok(()),
            Some((key, _)) => {
                let error = Error::new(ErrorKind::Invalid, format!("{key} in [relay] cannot be 0"))
                    .because("the relay would spin or stand still")
                    .next_step("use more, or take the line out for the default");
                Err((key, error))
            }
        }
    }
}
