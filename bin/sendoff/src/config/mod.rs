//! The configuration: `sendoff.toml`, the environment, and flags, in this order; the later wins.
//!
//! | where | how it is written |
//! |---|---|
//! | defaults | what [`Config::example`] shows |
//! | file | `lease = "10s"` below `[relay]` |
//! | environment | `SENDOFF_RELAY__LEASE=10s`; sinks and sources go by their names: `SENDOFF_SINK__AUDIT__PATH=…` |
//! | flags | as the commands define them, handed over as [`Override`]s |
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
pub(crate) use sink::{SinkConfig, SinkKind};
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
    /// Several databases, instead of one. Read apart from the rest, because each has a name and routes beside the
    /// settings of a database.
    #[serde(rename = "source", skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sources: Vec<SourceConfig>,
    /// How the relay works.
    pub(crate) relay: RelayConfig,
    /// When failed messages are tried again.
    pub(crate) retry: Retry,
    /// What the program says about its own doing.
    pub(crate) log: LogConfig,
    /// Where spans go.
    pub(crate) trace: TraceConfig,
    /// Metrics, probes and signs of life.
    pub(crate) watch: WatchSection,
    /// Metrics for DogStatsD.
    pub(crate) statsd: StatsdSection,
    /// Exceptions by topic; the first that fits counts.
    #[serde(rename = "topic", skip_serializing_if = "Vec::is_empty")]
    pub(crate) topics: Vec<Topic>,
    /// Where messages go. Read apart from the rest, because each type has settings of its own.
    #[serde(rename = "sink", skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sinks: Vec<SinkConfig>,
    /// Which messages go where; the first that fits counts.
    #[serde(rename = "route", skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<Route>,
}

impl Config {
    /// A file to start from, with every setting at its default and a word about it.
    pub(crate) fn example() -> &'static str {
        include_str!("example.toml")
    }

    /// As TOML, without passwords.
    ///
    /// # Errors
    /// When a path is not UTF-8.
    pub(crate) fn to_toml(&self) -> sendoff::Result<String> {
        toml::to_string_pretty(self).map_err(|error| {
            sendoff::Error::new(sendoff::ErrorKind::Invalid, "the configuration cannot be shown as TOML")
                .because(error.to_string())
                .next_step("check that all paths in it are UTF-8")
                .with_source(error)
        })
    }
}
