//! The formats of a message: raw, envelope, CloudEvents.

use std::borrow::Cow;

use bytes::Bytes;
use sendoff::Outgoing;
use sendoff::envelope::{Envelope, rfc3339};
use serde::{Deserialize, Serialize};

use crate::cloudevents;

/// How a sink writes messages. Every format keeps the id, the topic, the key, the time and the headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The payload, byte for byte; all other fields are in headers.
    #[default]
    Raw,
    /// One JSON object with all fields: see [`sendoff::envelope`].
    Envelope,
    /// A CloudEvent 1.0 in structured mode: one JSON object with all fields.
    #[serde(rename = "cloudevents")]
    CloudEvents,
    /// A CloudEvent 1.0 in binary mode: the payload, byte for byte; attributes are in headers.
    #[serde(rename = "cloudevents-binary")]
    CloudEventsBinary,
}

/// The names of CloudEvents attributes in binary mode, which depend on the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The prefix of an attribute's name: `ce-` (HTTP, NATS), `ce_` (Kafka), `cloudEvents:` (AMQP), empty (MQTT).
    pub prefix: &'static str,
}

/// A message in the form that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded<'a> {
    /// The content type of the body.
    pub content_type: Cow<'a, str>,
    /// The headers, in order, each name once: those of the message, and those that the format adds.
    pub headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The body of the message.
    pub body: Bytes,
}

impl Format {
    /// The header with the message's id. Raw messages and envelopes have it in addition to the message's own headers.
    pub const ID: &'static str = "sendoff-id";
    /// The header with the message's topic; see [`Format::ID`].
    pub const TOPIC: &'static str = "sendoff-topic";
    /// The header with the message's ordering key, if it has one; see [`Format::ID`].
    pub const KEY: &'static str = "sendoff-key";
    /// The header with the time of creation in RFC 3339, UTC, with microseconds; see [`Format::ID`].
    pub const CREATED_AT: &'static str = "sendoff-created-at";
    /// The header with the aggregate's type, if the message has one; see [`Format::ID`].
    pub const AGGREGATE_TYPE: &'static str = "sendoff-aggregate-type";
    /// The header with the aggregate's id, if the message has one; see [`Format::ID`].
    pub const AGGREGATE_ID: &'static str = "sendoff-aggregate-id";
    /// The header with the version of the payload's schema, if the message has one; see [`Format::ID`].
    pub const SCHEMA_VERSION: &'static str = "sendoff-schema-version";

    /// Encodes a message. `source` is the attribute `source` of CloudEvents: where the message comes from.
    pub fn encode<'a>(self, outgoing: &'a Outgoing, source: &'a str, names: Names) -> Encoded<'a> {
        match self {
            Self::Raw => Encoded {
                content_type: Cow::Borrowed(outgoing.content_type()),
                headers: own_headers(outgoing),
                body: outgoing.payload.clone(),
            },
            Self::Envelope => {
                // Serializing strings, numbers and raw JSON cannot fail.
                let body = serde_json::to_vec(&Envelope::of(outgoing)).unwrap_or_default();
                Encoded {
                    content_type: Cow::Borrowed("application/json"),
                    headers: own_headers(outgoing),
                    body: body.into(),
                }
            }
            Self::CloudEvents => cloudevents::structured(outgoing, source),
            Self::CloudEventsBinary => cloudevents::binary(outgoing, source, names),
        }
    }
}

/// The headers and the fields of a message. A header of the message cannot replace a field: names with `sendoff-` are
/// dropped.
fn own_headers(outgoing: &Outgoing) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    let mut headers: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::with_capacity(outgoing.headers.len() + 4);
    headers.push((Format::ID.into(), outgoing.id.to_string().into()));
    headers.push((Format::TOPIC.into(), outgoing.topic.as_str().into()));
    if let Some(key) = &outgoing.key {
        headers.push((Format::KEY.into(), key.as_str().into()));
    }
    headers.push((Format::CREATED_AT.into(), rfc3339(outgoing.created_at).into()));
    if let Some(aggregate_type) = &outgoing.aggregate_type {
        headers.push((Format::AGGREGATE_TYPE.into(), aggregate_type.as_str().into()));
    }
    if let Some(aggregate_id) = &outgoing.aggregate_id {
        headers.push((Format::AGGREGATE_ID.into(), aggregate_id.as_str().into()));
    }
    if let Some(version) = outgoing.schema_version {
        headers.push((Format::SCHEMA_VERSION.into(), version.to_string().into()));
    }
    let reserved = |name: &str| {
        name.get(..8)
            .is_some_and(|start| start.eq_ignore_ascii_case("sendoff-"))
    };
    let own = outgoing.headers.iter().filter(|(name, _)| !reserved(name));
    headers.extend(own.map(|(name, value)| (name.into(), value.into())));
    headers
}
