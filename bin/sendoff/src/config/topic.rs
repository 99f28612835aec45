//! `[[topic]]`: retries and order for some topics.

use std::fmt;

use sendoff::Pattern;
use sendoff_relay::{HeadPolicy, TopicPolicy};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Retry, RetryOverrides, route};

/// What is other for topics that fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topic {
    /// Which topics.
    #[serde(rename = "match", with = "route::pattern")]
    pub(crate) pattern: Pattern,
    /// What happens with the followers of a key when its head fails.
    #[serde(default, with = "self")]
    head: HeadPolicy,
    /// Retries, where they differ from `[retry]`.
    #[serde(default)]
    retry: RetryOverrides,
}

impl Topic {
    /// As the relay takes it.
    pub(crate) fn policy(&self, retry: &Retry) -> TopicPolicy {
        TopicPolicy {
            retry: self.retry(retry).policy(),
            head: self.head,
        }
    }

    /// Its retries, on top of those for all.
    pub(super) fn retry(&self, retry: &Retry) -> Retry {
        retry.with(&self.retry)
    }
}

const HEADS: [(&str, HeadPolicy); 3] = [
    ("block", HeadPolicy::Block),
    ("skip", HeadPolicy::Skip),
    ("park", HeadPolicy::Park),
];

fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HeadPolicy, D::Error> {
    deserializer.deserialize_str(HeadWord)
}

fn serialize<S: Serializer>(head: &HeadPolicy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match head {
        HeadPolicy::Block => "block",
        HeadPolicy::Skip => "skip",
        HeadPolicy::Park => "park",
    })
}

struct HeadWord;

impl Visitor<'_> for HeadWord {
    type Value = HeadPolicy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("block, skip or park")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<HeadPolicy, E> {
        let found = HEADS.into_iter().find(|(word, _)| *word == text);
        found
            .map(|(_, head)| head)
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}
