//! The configuration: `sendoff.toml`, then the environment, then flags; the last one wins.
//!
//! | where | how it is written |
//! |---|---|
//! | defaults | as in [`Config::example`] |
//! | file | `lease = "10s"` below `[relay]` |
//! | environment | `SENDOFF_RELAY__LEASE=10s`; for sinks and sources by name: `SENDOFF_SINK__AUDIT__PATH=…` |
//! | flags | as the commands define them, passed as [`Override`]s |
//!
//! Routes and topics are lists without names, so only the file can set them. An empty variable counts as not set.

mod database;
mod document;
mod environment;
mod file;
mod load;
mod log;
mod nearest;
mod plan;
mod relay;
mod retry;
mod route;
mod sink;
mod source;
mod topic;
mod trace;
mod unread;
mod url;
mod validate;
mod watch;

#[cfg(test)]
mod tests;

use sendoff_wire::duration;
use serde::{Deserialize, Serialize};

pub(crate) use database::Database;
pub(crate) use load::Override;
pub(crate) use log::LogConfig;
pub(crate) use relay::RelayConfig;
pub(crate) use retry::{Retry, RetryOverrides};
pub(crate) use route::Route;
pub(crate) use sendoff_wire::duration::parse_duration;
pub(crate) use sink::SinkConfig;
pub(crate) use source::SourceConfig;
pub(crate) use topic::Topic;
pub(crate) use trace::{TraceConfig, TraceProtocol};
pub(crate) use url::DatabaseUrl;
pub(crate) use watch::{StatsdSection, WatchSection};

/// All settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Where the outbox is.
    pub(crate) database: Database,
    /// Several databases instead of one. Parsed separately, because each has a name and routes in addition to the
    /// settings of a database.
    #[serde(rename = "source", skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sources: Vec<SourceConfig>,
    /// How the relay works.
    pub(crate) relay: RelayConfig,
    /// When failed messages are retried.
    pub(crate) retry: Retry,
    /// Log level and format.
    pub(crate) log: LogConfig,
    /// Where spans go.
    pub(crate) trace: TraceConfig,
    /// Metrics, probes and the liveness file.
    pub(crate) watch: WatchSection,
    /// Metrics for DogStatsD.
    pub(crate) statsd: StatsdSection,
    /// Settings by topic; the first match applies.
    #[serde(rename = "topic", skip_serializing_if = "Vec::is_empty")]
    pub(crate) topics: Vec<Topic>,
    /// Where messages go. Parsed separately, because each type has its own settings.
    #[serde(rename = "sink", skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sinks: Vec<SinkConfig>,
    /// Which messages go where; the first match applies.
    #[serde(rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<Route>,
}

impl Config {
    /// A file to start from, with the common settings at their defaults and a comment on each.
    pub(crate) fn example() -> &'static str {
        include_str!("example.toml")
    }

    /// As TOML, without passwords.
    ///
    /// # Errors
    /// When a path is not UTF-8.
    pub(crate) fn to_toml(&self) -> sendoff::Result<String> {
        toml::to_string_pretty(self).map_err(|error| {
            sendoff::Error::new(sendoff::ErrorKind::Invalid, "cannot print the configuration as TOML")
                .because(error.to_string())
                .next_step("check that all paths in it are UTF-8")
                .with_source(error)
        })
    }
}
