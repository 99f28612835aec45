//! `[retry]`, and its overrides by topic.

use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_relay::RetryPolicy;
use serde::{Deserialize, Serialize};

use super::duration;

/// When failed messages are retried; [`RetryPolicy`] documents the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retry {
    #[serde(with = "duration")]
    base: Duration,
    multiplier: f64,
    #[serde(with = "duration")]
    max: Duration,
    jitter: f64,
    attempts: u32,
}

/// The fields of [`Retry`] that a topic overrides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RetryOverrides {
    #[serde(with = "duration::option", skip_serializing_if = "Option::is_none")]
    base: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multiplier: Option<f64>,
    #[serde(with = "duration::option", skip_serializing_if = "Option::is_none")]
    max: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
}

impl Default for Retry {
    fn default() -> Self {
        let RetryPolicy {
            base,
            multiplier,
            max,
            jitter,
            attempts,
        } = RetryPolicy::default();
        Self {
            base,
            multiplier,
            max,
            jitter,
            attempts,
        }
    }
}

impl Retry {
    /// The policy of the relay.
    pub(crate) fn policy(&self) -> RetryPolicy {
        RetryPolicy {
            base: self.base,
            multiplier: self.multiplier,
            max: self.max,
            jitter: self.jitter,
            attempts: self.attempts,
        }
    }

    /// With the overrides of a topic.
    pub(crate) fn with(&self, overrides: &RetryOverrides) -> Self {
        Self {
            base: overrides.base.unwrap_or(self.base),
            multiplier: overrides.multiplier.unwrap_or(self.multiplier),
            max: overrides.max.unwrap_or(self.max),
            jitter: overrides.jitter.unwrap_or(self.jitter),
            attempts: overrides.attempts.unwrap_or(self.attempts),
        }
    }

    /// An error comes with the name of its setting.
    pub(super) fn validate(&self) -> Result<(), (&'static str, Error)> {
        let checks = [
            ("multiplier", (1.0..=1000.0).contains(&self.multiplier), "1 to 1000"),
            (
                "jitter",
                (0.0..=1.0).contains(&self.jitter),
                "0 to 1, a share of the delay",
            ),
            ("attempts", self.attempts > 0, "1 or more"),
            ("max", self.max >= self.base, "at least base"),
        ];
        match checks.into_iter().find(|(_, is_fine, _)| !is_fine) {
            None => Ok(()),
            Some((key, _, allowed)) => {
                let error = Error::new(ErrorKind::Invalid, format!("{key} of the retries is out of range"))
                    .because("delays would be invalid, or nothing would be tried");
                Err((key, error.next_step(format!("use {allowed}"))))
            }
        }
    }
}
