//! How a message is written: raw, as an envelope, or as a CloudEvent.

use std::borrow::Cow;

use bytes::Bytes;
use sendoff::Delivery;
use sendoff::envelope::{Envelope, rfc3339};
use serde::{Deserialize, Serialize};

use crate::cloudevents;

/// How a sink writes messages. The id, the topic, the key, the time and the headers survive in each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The payload, byte for byte; everything else in headers.
    #[default]
    Raw,
    /// One JSON object with everything in it: see [`sendoff::envelope`].
    Envelope,
    /// A CloudEvent 1.0 in structured mode: one JSON object.
    #[serde(rename = "cloudevents")]
    CloudEvents,
    /// A CloudEvent 1.0 in binary mode: the payload, byte for byte, attributes in headers.
    #[serde(rename = "cloudevents-binary")]
    CloudEventsBinary,
}

/// How a protocol wants the names of CloudEvents' attributes in binary mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// What stands before an attribute's name: `ce-` (HTTP, NATS), `ce_` (Kafka), `cloudEvents:` (AMQP), nothing (MQTT).
    pub prefix: &'static str,
}

/// A message as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded<'a> {
    /// What the body is.
    pub content_type: Cow<'a, str>,
    /// Headers, in order, each name once: the message's own ones, and what the format puts beside the body.
    pub headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The body.
    pub body: Bytes,
}

impl Format {
    /// Names of the headers that raw messages and envelopes carry beside the message's own.
    pub const ID: &'static str = "sendoff-id";
    /// See [`Format::ID`].
    pub const TOPIC: &'static str = "sendoff-topic";
    /// See [`Format::ID`]; only with an ordering key.
    pub const KEY: &'static str = "sendoff-key";
    /// See [`Format::ID`]; RFC 3339, UTC, microseconds.
    pub const CREATED_AT: &'static str = "sendoff-created-at";
    /// See [`Format::ID`]; only of domain events.
    pub const AGGREGATE_TYPE: &'static str = "sendoff-aggregate-type";
    /// See [`Format::ID`]; only of domain events.
    pub const AGGREGATE_ID: &'static str = "sendoff-aggregate-id";
    /// See [`Format::ID`]; only with a schema version.
    pub const SCHEMA_VERSION: &'static str = "sendoff-schema-version";

    /// Writes a message. `source` is the CloudEvents attribute that says where events come from.
    pub fn encode<'a>(self, delivery: &'a Delivery, source: &'a str, names: Names) -> Encoded<'a> {
        match self {
            Self::Raw => Encoded {
                content_type: Cow::Borrowed(delivery.content_type()),
                headers: own_headers(delivery),
                body: delivery.payload.clone(),
            },
            Self::Envelope => {
                // An object of strings, numbers and raw JSON always serialises.
                let body = serde_json::to_vec(&Envelope::of(delivery)).unwrap_or_default();
                Encoded {
                    content_type: Cow::Borrowed("application/json"),
                    headers: own_headers(delivery),
                    body: body.into(),
                }
            }
            Self::CloudEvents => cloudevents::structured(delivery, source),
            Self::CloudEventsBinary => cloudevents::binary(delivery, source, names),
        }
    }
}

/// The message's headers and its own fields. A header of the message cannot pass itself off as one of its fields.
fn own_headers(delivery: &Delivery) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    let mut headers: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::with_capacity(delivery.headers.len() + 4);
    headers.push((Format::ID.into(), delivery.id.to_string().into()));
    headers.push((Format::TOPIC.into(), delivery.topic.as_str().into()));
    if let Some(key) = &delivery.key {
        headers.push((Format::KEY.into(), key.as_str().into()));
    }
    headers.push((Format::CREATED_AT.into(), rfc3339(delivery.created_at).into()));
    if let Some(aggregate_type) = &delivery.aggregate_type {
        headers.push((Format::AGGREGATE_TYPE.into(), aggregate_type.as_str().into()));
    }
    if let Some(aggregate_id) = &delivery.aggregate_id {
        headers.push((Format::AGGREGATE_ID.into(), aggregate_id.as_str().into()));
    }
    if let Some(version) = delivery.schema_version {
        headers.push((Format::SCHEMA_VERSION.into(), version.to_string().into()));
    }
    let reserved = |name: &str| {
        name.get(..8)
            .is_some_and(|start| start.eq_ignore_ascii_case("sendoff-"))
    };
    let own = delivery.headers.iter().filter(|(name, _)| !reserved(name));
    headers.extend(own.map(|(name, value)| (name.into(), value.into())));
    headers
}
