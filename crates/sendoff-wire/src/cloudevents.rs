//! CloudEvents 1.0.
//!
//! `type` is the topic, `subject` the aggregate's id, `partitionkey` the ordering key, `time` when the message was
//! emitted. Trace context goes into the extensions that are made for it (`traceparent`, `tracestate`); any other header
//! becomes an extension if its name can be one (lower-case letters and digits, at most 20), and stays a header as well.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::Delivery;
use sendoff::envelope::{is_json, rfc3339};
use serde_json::value::RawValue;

use crate::format::{Encoded, Names};

const SPEC_VERSION: &str = "1.0";
/// Names that the specification gives a meaning to.
const RESERVED: [&str; 10] = [
    "id",
    "source",
    "type",
    "specversion",
    "time",
    "subject",
    "datacontenttype",
    "dataschema",
    "data",
    "partitionkey",
];

type Attribute<'a> = (Cow<'a, str>, Cow<'a, str>);

/// All attributes but `datacontenttype`, which is the content type in binary mode.
fn attributes<'a>(delivery: &'a Delivery, source: &'a str) -> Vec<Attribute<'a>> {
    let mut attributes: Vec<Attribute<'a>> = vec![
        ("specversion".into(), SPEC_VERSION.into()),
        ("id".into(), delivery.id.to_string().into()),
        ("source".into(), source.into()),
        ("type".into(), delivery.topic.as_str().into()),
        ("time".into(), rfc3339(delivery.created_at).into()),
    ];
    if let Some(subject) = delivery.aggregate_id.as_deref().filter(|id| !id.is_empty()) {
        attributes.push(("subject".into(), subject.into()));
    }
    if let Some(key) = delivery.key.as_deref().filter(|key| !key.is_empty()) {
        attributes.push(("partitionkey".into(), key.into()));
    }
    if let Some(aggregate_type) = &delivery.aggregate_type {
        attributes.push(("aggregatetype".into(), aggregate_type.as_str().into()));
    }
    if let Some(version) = delivery.schema_version {
        attributes.push(("schemaversion".into(), version.to_string().into()));
    }
    let taken = |name: &str| RESERVED.contains(&name) || name == "aggregatetype" || name == "schemaversion";
    let extensions = delivery
        .headers
        .iter()
        .filter(|(name, _)| can_be_extension(name) && !taken(name));
    attributes.extend(extensions.map(|(name, value)| (name.into(), value.into())));
    attributes
}

fn can_be_extension(name: &str) -> bool {
    (1..=20).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Headers of the message that are no attributes.
fn plain_headers<'a>(delivery: &'a Delivery) -> impl Iterator<Item = Attribute<'a>> {
    delivery.headers.iter().map(|(name, value)| (name.into(), value.into()))
}

pub(crate) fn binary<'a>(delivery: &'a Delivery, source: &'a str, names: Names) -> Encoded<'a> {
    let mut headers: Vec<Attribute<'a>> = attributes(delivery, source)
        .into_iter()
        .map(|(name, value)| (format!("{}{name}", names.prefix).into(), value))
        .collect();
    let attributes = headers.len();
    for header in plain_headers(delivery) {
        // A protocol without a prefix has one room for both.
        if !headers[..attributes]
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(&header.0))
        {
            headers.push(header);
        }
    }
    Encoded {
        content_type: delivery.content_type().into(),
        headers,
        body: delivery.payload.clone(),
    }
}

pub(crate) fn structured<'a>(delivery: &'a Delivery, source: &'a str) -> Encoded<'a> {
    let mut body = serde_json::Map::new();
    for (name, value) in attributes(delivery, source) {
        body.insert(name.into_owned(), value.into_owned().into());
    }
    body.insert("datacontenttype".into(), delivery.content_type().into());
    let mut body = serde_json::Value::Object(body).to_string();
    body.pop();
    match json_text(delivery) {
        Some(raw) => {
            body.push_str(",\"data\":");
            body.push_str(raw);
        }
        None => {
            body.push_str(",\"data_base64\":\"");
            STANDARD.encode_string(&delivery.payload, &mut body);
            body.push('"');
        }
    }
    body.push('}');
    Encoded {
        content_type: "application/cloudevents+json; charset=utf-8".into(),
        headers: plain_headers(delivery).collect(),
        body: body.into(),
    }
}

/// A payload that is JSON by its type and in fact: it goes in as it is, digits and order kept.
fn json_text(delivery: &Delivery) -> Option<&str> {
    if !is_json(delivery.content_type()) {
        return None;
    }
    let text = std::str::from_utf8(&delivery.payload).ok()?;
    serde_json::from_str::<&RawValue>(text).is_ok().then_some(text)
}
