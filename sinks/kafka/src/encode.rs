//! Encodes a message as a record.

use rdkafka::message::{Header, OwnedHeaders};
use sendoff::{Outcome, Outgoing};
use sendoff_wire::escape::{Encodings, is_safe};
use sendoff_wire::{Encoded, Names};

use crate::{KafkaConfig, error};

/// The prefix of CloudEvents attributes in the Kafka binding.
const NAMES: Names = Names { prefix: "ce_" };
const CONTENT_TYPE: &str = "content-type";
const LONGEST_TOPIC: usize = 249;
/// The most bytes of a record in addition to its key, its value and its headers.
const OVERHEAD: usize = 100;

/// An encoded message.
pub(crate) struct Prepared<'a> {
    pub(crate) topic: String,
    pub(crate) key: Option<String>,
    pub(crate) encoded: Encoded<'a>,
}

/// Encodes a message.
pub(crate) fn encode<'a>(config: &'a KafkaConfig, outgoing: &'a Outgoing) -> Result<Prepared<'a>, Outcome> {
    let unfilled = |unfilled: sendoff_wire::Unfilled| Outcome::Permanent(unfilled.to_string().into());
    let topic = config.topic.fill(outgoing).map_err(unfilled)?;
    check_topic(&topic).map_err(|why| error::bad_topic(&topic, why))?;
    let key = match &config.key {
        Some(template) => Some(template.fill(outgoing).map_err(unfilled)?),
        None => outgoing.key.clone(),
    };
    let encoded = config.format.encode(outgoing, &config.source, NAMES);
    let size = |(name, value): &(std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| name.len() + value.len() + 8;
    let headers: usize = encoded.headers.iter().map(size).sum();
    let size =
        encoded.body.len() + key.as_deref().map_or(0, str::len) + headers + encoded.content_type.len() + OVERHEAD;
    let limit = usize::try_from(config.max_message_bytes).unwrap_or(usize::MAX);
    if size > limit {
        return Err(error::too_large(size, limit));
    }
    Ok(Prepared { topic, key, encoded })
}

impl Prepared<'_> {
    /// The headers of the record. Values can be any bytes; the client requires names without NUL.
    pub(crate) fn headers(&self) -> OwnedHeaders {
        let headers = OwnedHeaders::new_with_capacity(self.encoded.headers.len() + 1).insert(Header {
            key: CONTENT_TYPE,
            value: Some(self.encoded.content_type.as_bytes()),
        });
        let own = self
            .encoded
            .headers
            .iter()
            .filter(|(name, _)| !name.eq_ignore_ascii_case(CONTENT_TYPE) && !Encodings::is_own(name));
        let mut encodings = Encodings::default();
        let headers = own.fold(headers, |headers, (name, value)| {
            headers.insert(Header {
                key: &encodings.name(name, is_safe),
                value: Some(value.as_bytes()),
            })
        });
        encodings.headers().fold(headers, |headers, (name, value)| {
            headers.insert(Header {
                key: name,
                value: Some(value.as_bytes()),
            })
        })
    }
}

/// Checks the name of a topic. The error is the cause.
pub(crate) fn check_topic(topic: &str) -> Result<(), &'static str> {
    if topic.is_empty() || topic.len() > LONGEST_TOPIC {
        return Err("it must have 1 to 249 characters");
    }
    if topic == "." || topic == ".." {
        return Err("it is . or ..");
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !topic.bytes().all(is_allowed) {
        return Err("Kafka allows only letters, digits, ., _ and -");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_topic_is_refused() {
        for bad in ["", ".", "..", "a b", "a/b", "ä", "a\0", &"a".repeat(250)] {
            assert!(check_topic(bad).is_err(), "{bad:.20}");
        }
        for good in ["a", "order.placed", "A_b-9", &"a".repeat(249)] {
            assert!(check_topic(good).is_ok(), "{good:.20}");
        }
    }
}
