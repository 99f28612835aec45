//! `[[topic]]`: retries and ordering for some topics.

use std::fmt;

use sendoff::Pattern;
use sendoff_relay::{OnFailure, TopicPolicy};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Retry, RetryOverrides, route};

/// Settings for topics that match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topic {
    /// The pattern of the topics.
    #[serde(rename = "match", with = "route::pattern")]
    pub(crate) pattern: Pattern,
    /// What the followers of a key do when its head fails.
    #[serde(default, with = "self")]
    on_failure: OnFailure,
    /// Retries, where they differ from `[retry]`.
    #[serde(default)]
    retry: RetryOverrides,
}

impl Topic {
    /// The policy of the relay.
    pub(crate) fn policy(&self, retry: &Retry) -> TopicPolicy {
        TopicPolicy {
            retry: self.retry(retry).policy(),
            on_failure: self.on_failure,
        }
    }

    /// Its retries: `[retry]` with its overrides.
    pub(super) fn retry(&self, retry: &Retry) -> Retry {
        retry.with(&self.retry)
    }
}

const HEADS: [(&str, OnFailure); 3] = [
    ("block", OnFailure::Block),
    ("skip", OnFailure::Skip),
    ("park", OnFailure::Park),
];

fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OnFailure, D::Error> {
    deserializer.deserialize_str(HeadWord)
}

fn serialize<S: Serializer>(head: &OnFailure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match head {
        OnFailure::Block => "block",
        OnFailure::Skip => "skip",
        OnFailure::Park => "park",
    })
}

struct HeadWord;

impl Visitor<'_> for HeadWord {
    type Value = OnFailure;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("block, skip or park")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OnFailure, E> {
        let found = HEADS.into_iter().find(|(word, _)| *word == text);
        found
            .map(|(_, head)| head)
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}
