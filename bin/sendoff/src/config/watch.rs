//! `[watch]` and `[statsd]`: metrics, probes and the liveness file.

use std::path::PathBuf;
use std::time::Duration;

use sendoff::{Error, ErrorKind, Result};
use sendoff_watch::{StatsdConfig, StatsdTarget, Systemd, WatchConfig};
use serde::{Deserialize, Serialize};

use super::duration;

/// Metrics and probes of the relay; [`WatchConfig`] documents the settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WatchSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    liveness_file: Option<PathBuf>,
    #[serde(with = "duration")]
    interval: Duration,
    #[serde(with = "duration")]
    stall_after: Duration,
    topics: usize,
}

impl Default for WatchSection {
    fn default() -> Self {
        let WatchConfig {
            listen,
            interval,
            stall_after,
            topics,
            liveness_file,
            statsd: _,
            systemd: _,
        } = WatchConfig::default();
        Self {
            listen,
            liveness_file,
            interval,
            stall_after,
            topics,
        }
    }
}

/// Metrics for DogStatsD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StatsdSection {
    enabled: bool,
    host: String,
    port: u16,
    /// A Unix socket instead of host and port.
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<PathBuf>,
    /// The prefix of all names; the default depends on the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    tags: Vec<String>,
}

impl Default for StatsdSection {
    fn default() -> Self {
        Self {
            enabled: false,
            host: "127.0.0.1".to_owned(),
            port: 9125,
            socket: None,
            prefix: None,
            tags: Vec::new(),
        }
    }
}

impl WatchSection {
    /// The settings of the watch, with those that systemd put into the environment.
    pub(crate) fn config(&self, statsd: Option<StatsdConfig>) -> WatchConfig {
        WatchConfig {
            listen: self.listen.clone(),
            interval: self.interval,
            stall_after: self.stall_after,
            topics: self.topics,
            liveness_file: self.liveness_file.clone(),
            statsd,
            systemd: Systemd::from_env(|name| std::env::var_os(name), std::process::id()),
        }
    }

    /// Rejects invalid settings. An error comes with the name of its setting.
    pub(super) fn validate(&self) -> Result<(), (&'static str, Error)> {
        let is_zero = [
            ("interval", self.interval.is_zero()),
            ("stall_after", self.stall_after.is_zero()),
        ];
        if let Some((key, _)) = is_zero.into_iter().find(|(_, is_zero)| *is_zero) {
            let error = Error::new(ErrorKind::Invalid, format!("{key} in [watch] cannot be 0"))
                .because("checks would run without a pause, or always report a stall")
                .next_step("use a value above 0, or remove the line for the default");
            return Err((key, error));
        }
        let is_address = |listen: &str| {
            let port = listen.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            matches!(port, Some(Ok(_)))
        };
        match &self.listen {
            Some(listen) if !is_address(listen) => {
                let error = Error::new(ErrorKind::Invalid, format!("listen in [watch] is {listen:?}"))
                    .because("the address must be a host with a port")
                    .next_step(
                        "write the address like 127.0.0.1:9464, or remove `listen` to serve no metrics and probes",
                    );
                Err(("listen", error))
            }
            _ => Ok(()),
        }
    }
}

impl StatsdSection {
    /// The settings of the watch; `None` when it is off. `drop_in`: with the names of django-celery-outbox, which is
    /// replaced.
    pub(crate) fn config(&self, drop_in: bool) -> Option<StatsdConfig> {
        let (prefix, topic_tag) = if drop_in {
            ("celery_outbox", "task_name")
        } else {
            ("sendoff", "topic")
        };
        self.enabled.then(|| StatsdConfig {
            target: match &self.socket {
                Some(path) => StatsdTarget::Unix(path.clone()),
                None => StatsdTarget::Udp {
                    host: self.host.clone(),
                    port: self.port,
                },
            },
            prefix: self.prefix.clone().unwrap_or_else(|| prefix.to_owned()),
            topic_tag: topic_tag.to_owned(),
            tags: self.tags.clone(),
            drop_in,
        })
    }

    /// Rejects invalid settings. An error comes with the name of its setting.
    pub(super) fn validate(&self) -> Result<(), (&'static str, Error)> {
        let breaks = |text: &str| text.contains(['|', ',', '\n', '\r', '#']);
        if self
            .prefix
            .as_deref()
            .is_some_and(|prefix| breaks(prefix) || prefix.contains(':'))
        {
            let error = Error::new(ErrorKind::Invalid, "prefix in [statsd] is invalid")
                .because("| , : # and line ends have a special meaning in StatsD")
                .next_step("use letters, digits, dots and underscores");
            return Err(("prefix", error));
        }
        if let Some(tag) = self.tags.iter().find(|tag| tag.is_empty() || breaks(tag)) {
            let error = Error::new(ErrorKind::Invalid, format!("the tag {tag:?} in [statsd] is invalid"))
                .because(
                    "the tag is empty, or contains one of | , # or a line end, which have a special meaning in StatsD",
                )
                .next_step("write tags like tags = [\"env:prod\", \"team:shop\"]");
            return Err(("tags", error));
        }
        Ok(())
    }
}
