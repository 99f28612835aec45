//! CloudEvents 1.0.
//!
//! `type` is the topic, `subject` the aggregate's id, `partitionkey` the ordering key, `time` when the message was
//! emitted. Trace context goes into the extensions that are made for it (`traceparent`, `tracestate`); any other header
//! becomes an extension if it can be one (a name of lower-case letters and digits, at most 20, that means nothing else; a
//! value without control characters), and stays a header as well. All others are in one extension, [`HEADERS`], as a JSON
//! object in a text: in structured mode, where there may be nothing but the event, and in binary mode those that would be taken
//! for an attribute.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::envelope::{is_json, rfc3339};
use sendoff::{Delivery, Headers};
use serde_json::value::RawValue;

use crate::format::{Encoded, Names};

const SPEC_VERSION: &str = "1.0";
/// The extension that holds the headers which can be no extension themselves.
const HEADERS: &str = "sendoffheaders";
/// Names that mean something else than a header of the message.
const RESERVED: [&str; 14] = [
    "id",
    "source",
    "type",
    "specversion",
    "time",
    "subject",
    "datacontenttype",
    "dataschema",
    "data",
    "data_base64",
    "partitionkey",
    "aggregatetype",
    "schemaversion",
    HEADERS,
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
    let extensions = delivery
        .headers
        .iter()
        .filter(|(name, value)| is_extension(name, value));
    attributes.extend(extensions.map(|(name, value)| (name.into(), value.into())));
    attributes
}

/// Whether a header of the message is an extension.
fn is_extension(name: &str, value: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=20).contains(&name.len())
        && name.bytes().all(allowed)
        && !RESERVED.contains(&name)
        && !value.chars().any(char::is_control)
}

pub(crate) fn binary<'a>(delivery: &'a Delivery, source: &'a str, names: Names) -> Encoded<'a> {
    let mut headers: Vec<Attribute<'a>> = attributes(delivery, source)
        .into_iter()
        .map(|(name, value)| (format!("{}{name}", names.prefix).into(), value))
        .collect();
    let mut hidden = Headers::new();
    for (name, value) in &delivery.headers {
        // A protocol without a prefix has one room for both.
        if names.prefix.is_empty() && is_extension(name, value) {
            continue;
        }
        if is_taken(name, names, &headers) {
            hidden.insert(name, value);
        } else {
            headers.push((name.into(), value.into()));
        }
    }
    if let Some(hidden) = hidden.to_json() {
        headers.push((format!("{}{HEADERS}", names.prefix).into(), hidden.into()));
    }
    Encoded {
        content_type: delivery.content_type().into(),
        headers,
        body: delivery.payload.clone(),
    }
}

/// Whether a header would be taken for an attribute of the event, or for another header.
fn is_taken(name: &str, names: Names, headers: &[Attribute<'_>]) -> bool {
    let front = name.get(..names.prefix.len());
    let is_prefixed = front.is_some_and(|front| front.eq_ignore_ascii_case(names.prefix));
    let is_reserved = |own: &str| RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(own));
    is_prefixed && is_reserved(&name[names.prefix.len()..])
        || headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

pub(crate) fn structured<'a>(delivery: &'a Delivery, source: &'a str) -> Encoded<'a> {
    let mut body = serde_json::Map::new();
    for (name, value) in attributes(delivery, source) {
        body.insert(name.into_owned(), value.into_owned().into());
    }
    let hidden = delivery
        .headers
        .iter()
        .filter(|(name, value)| !is_extension(name, value));
    if let Some(hidden) = hidden.collect::<Headers>().to_json() {
        body.insert(HEADERS.into(), hidden.into());
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
        headers: delivery
            .headers
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sendoff::Uuid;
    use sendoff::store::{Place, Room};

    use super::*;

    fn delivery(headers: &[(&str, &str)]) -> Delivery {
        Delivery {
            id: Uuid::nil(),
            topic: "order.placed".into(),
            payload: "{}".into(),
            content_type: None,
            headers: headers.iter().copied().collect(),
            key: None,
            aggregate_type: None,
            aggregate_id: None,
            schema_version: None,
            idempotency_key: None,
            priority: 0,
            created_at: std::time::UNIX_EPOCH,
            expires_at: None,
            attempts: 0,
            max_attempts: None,
            place: Place {
                room: Room::Ready,
                lane: 0,
                seq: 1,
                leg: None,
                id: sendoff::Uuid::nil().into(),
                spot: 0,
            },
        }
    }

    #[test]
    fn a_structured_event_has_all_headers_in_it() {
        let delivery = delivery(&[
            ("tenant", "7"),
            ("X-Tenant", "8"),
            ("id", "mine"),
            ("note", "two\nlines"),
            ("sendoffheaders", "mine, too"),
        ]);
        let encoded = structured(&delivery, "/shop");
        let event: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&encoded.body).unwrap();
        assert_eq!(
            (&event["tenant"], &event["type"]),
            (&"7".into(), &"order.placed".into())
        );
        assert_eq!(event["id"], Uuid::nil().to_string());
        assert_eq!(
            event["sendoffheaders"],
            r#"{"X-Tenant":"8","id":"mine","note":"two\nlines","sendoffheaders":"mine, too"}"#
        );
        let names = event.keys().filter(|name| *name != "data");
        for name in names {
            assert!(
                name.len() <= 20 && name.bytes().all(|byte| byte.is_ascii_lowercase()),
                "{name}"
            );
        }
    }

    #[test]
    fn an_event_without_such_headers_has_no_place_for_them() {
        let delivery = delivery(&[("tenant", "7")]);
        let text = String::from_utf8(structured(&delivery, "/shop").body.to_vec()).unwrap();
        assert!(!text.contains(HEADERS), "{text}");
        for prefix in ["", "ce-"] {
            let encoded = binary(&delivery, "/shop", Names { prefix });
            assert!(
                encoded.headers.iter().all(|(name, _)| !name.contains(HEADERS)),
                "{encoded:?}"
            );
        }
    }

    #[test]
    fn in_binary_mode_no_header_passes_for_an_attribute_and_none_is_lost() {
        let delivery = delivery(&[
            ("Id", "1"),
            ("ce-id", "2"),
            ("ce-tenant", "3"),
            ("dataschema", "4"),
            ("tenant", "7"),
            ("x-tenant", "8"),
        ]);
        for (prefix, hidden, plain) in [
            (
                "",
                r#"{"Id":"1","dataschema":"4"}"#,
                ["ce-id", "ce-tenant", "x-tenant"].as_slice(),
            ),
            (
                "ce-",
                r#"{"ce-id":"2","ce-tenant":"3"}"#,
                &["Id", "dataschema", "tenant", "x-tenant"],
            ),
        ] {
            let encoded = binary(&delivery, "/shop", Names { prefix });
            let of = |name: &str| {
                let found: Vec<&str> = encoded
                    .headers
                    .iter()
                    .filter(|(other, _)| other.eq_ignore_ascii_case(name))
                    .map(|(_, value)| &**value)
                    .collect();
                assert!(found.len() < 2, "{name} came twice: {found:?}");
                found.first().copied()
            };
            assert_eq!(of(&format!("{prefix}id")), Some(Uuid::nil().to_string().as_str()));
            assert_eq!(of(&format!("{prefix}tenant")), Some("7"));
            assert_eq!(of(&format!("{prefix}sendoffheaders")), Some(hidden), "{prefix:?}");
            for name in plain {
                assert_eq!(of(name), delivery.headers.get(name), "{prefix:?}");
            }
        }
    }
}
