//! `[[sink]]`: where messages go.

use std::sync::Arc;
use std::time::Duration;

use sendoff::{Result, Sink};
use sendoff_relay::SinkSettings;
use sendoff_sink_stdout::StdoutConfig;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::duration;
use super::unread::Unread;
use crate::sinks::{Row, Settings, Support};

/// One sink.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SinkConfig {
    #[serde(flatten)]
    common: Common,
    /// Its type, as in the file.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The settings of its type.
    #[serde(flatten)]
    own: Box<dyn Settings>,
}

impl PartialEq for SinkConfig {
    fn eq(&self, other: &Self) -> bool {
        self.common == other.common && *self.own == *other.own
    }
}

/// The settings that all types share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Common {
    name: String,
    #[serde(default = "batch")]
    batch: usize,
    #[serde(default = "concurrency")]
    concurrency: usize,
    #[serde(default = "timeout", with = "duration")]
    timeout: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
}

const COMMON: [&str; 6] = ["name", "type", "batch", "concurrency", "timeout", "rate"];

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    row: &'static Row,
}

impl SinkConfig {
    /// Its name, for routes and for people.
    pub(crate) fn name(&self) -> &str {
        &self.common.name
    }

    /// How the relay calls it.
    pub(crate) fn settings(&self) -> SinkSettings {
        SinkSettings {
            batch: self.common.batch,
            concurrency: self.common.concurrency,
            timeout: self.common.timeout,
            rate: self.common.rate,
        }
    }

    /// Creates the sink.
    ///
    /// # Errors
    /// The errors of the sink about its settings.
    pub(crate) fn build(&self) -> Result<Arc<dyn Sink>> {
        self.own.build()
    }

    /// Checks the settings of its type.
    pub(super) fn validate(&self) -> Result<()> {
        self.own.validate()
    }

    /// The settings of its type, if this is its type.
    pub(crate) fn own<C: 'static>(&self) -> Option<&C> {
        self.own.config().downcast_ref()
    }

    /// Whether it writes to standard output, where reports of commands would be mistaken for messages.
    pub(crate) fn uses_stdout(&self) -> bool {
        self.own::<StdoutConfig>().is_some()
    }
}

/// Reads all `[[sink]]`s. The crate of the sink parses the settings of its type; the settings that all types share are
/// removed first.
pub(super) fn read(sinks: Spanned<DeValue<'_>>) -> Result<Vec<SinkConfig>, Unread> {
    let span = sinks.span();
    let DeValue::Array(entries) = sinks.into_inner() else {
        return Err(Unread::list("sink", span));
    };
    let mut read = Vec::with_capacity(entries.len());
    for entry in entries {
        let span = entry.span();
        let DeValue::Table(mut own) = entry.into_inner() else {
            return Err(Unread::list("sink", span));
        };
        let common: DeTable<'_> = COMMON.iter().filter_map(|name| own.remove_entry(*name)).collect();
        let Typed { row } = deserialize(Spanned::new(span.clone(), common.clone()))?;
        let common = deserialize(Spanned::new(span.clone(), common))?;
        let own = match row.support {
            Support::Configured(of) => of
                .read(Deserializer::from(Spanned::new(span.clone(), own)))
                .map_err(|error| Unread::new(&error, &COMMON).or_at(span).hiding(of.secrets()))?,
            Support::NotBuilt(why) => return Err(Unread::because(why, span)),
            Support::Elsewhere(why) => {
                return Err(Unread::because(&format!("{why} (see {})", row.page), span));
            }
        };
        read.push(SinkConfig {
            common,
            kind: row.name,
            own,
        });
    }
    Ok(read)
}

fn deserialize<T: DeserializeOwned>(table: Spanned<DeTable<'_>>) -> Result<T, Unread> {
    let span = table.span();
    T::deserialize(Deserializer::from(table)).map_err(|error| Unread::new(&error, &COMMON).or_at(span))
}

fn batch() -> usize {
    SinkSettings::default().batch
}

fn concurrency() -> usize {
    SinkSettings::default().concurrency
}

fn timeout() -> Duration {
    SinkSettings::default().timeout
}
