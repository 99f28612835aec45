//! `[log]`: log level and format.

use clap::ValueEnum;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::log::{Format, Level};

/// Log level and format. The values are those of the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogConfig {
    /// Log format.
    #[serde(with = "self")]
    pub(crate) format: Format,
    /// Log level.
    #[serde(with = "self")]
    pub(crate) level: Level,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            format: Format::Human,
            level: Level::Info,
        }
    }
}

fn deserialize<'de, D: Deserializer<'de>, T: ValueEnum>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    T::from_str(&text, false).map_err(|_| {
        let words: Vec<String> = T::value_variants().iter().filter_map(word).collect();
        let expected = format!("one of {}", words.join(", "));
        D::Error::invalid_value(Unexpected::Str(&text), &expected.as_str())
    })
}

fn serialize<S: Serializer, T: ValueEnum>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&word(value).unwrap_or_default())
}

fn word<T: ValueEnum>(value: &T) -> Option<String> {
    Some(value.to_possible_value()?.get_name().to_owned())
}
