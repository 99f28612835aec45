//! `[[route]]`: which messages go where.

use sendoff::Pattern;
use serde::{Deserialize, Serialize};

/// Topics that match go to these sinks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    /// The pattern of the topics.
    #[serde(rename = "match", with = "pattern")]
    pub(crate) pattern: Pattern,
    /// The names of the sinks; each gets its own delivery.
    pub(crate) to: Vec<String>,
}

/// A topic pattern as text.
pub(super) mod pattern {
    use sendoff::Pattern;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }

    pub(in super::super) fn serialize<S: Serializer>(pattern: &Pattern, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(pattern)
    }
}
