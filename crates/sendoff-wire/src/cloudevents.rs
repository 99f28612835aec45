//! CloudEvents 1.0.
//!
//! `type` is the topic, `subject` the aggregate's id, `partitionkey` the ordering key, `time` when the message was
//! emitted. Trace context goes into its own extensions (`traceparent`, `tracestate`). Any other header becomes an
//! extension if it can be one (a name of lower-case letters and digits, at most 20, that is not reserved; a value
//! without control characters), and stays a header as well. The remaining headers go into one extension, [`HEADERS`],
//! as the text of a JSON object: in structured mode all of them, because the event may be all that a consumer gets; in
//! binary mode only those that a consumer would take for an attribute.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::envelope::{is_json, rfc3339};
use sendoff::{Headers, Outgoing};
use serde_json::value::RawValue;

use crate::format::{Encoded, Names};

const SPEC_VERSION: &str = "1.0";
/// The extension for headers that cannot be extensions themselves.
const HEADERS: &str = "sendoffheaders";
/// Names with another meaning, which a header of the message must not take.
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

/// All attributes except `datacontenttype`, which is the content type in binary mode.
fn attributes<'a>(outgoing: &'a Outgoing, source: &'a str) -> Vec<Attribute<'a>> {
    let mut attributes: Vec<Attribute<'a>> = vec![
        ("specversion".into(), SPEC_VERSION.into()),
        ("id".into(), outgoing.id.to_string().into()),
        ("source".into(), source.into()),
        ("type".into(), outgoing.topic.as_str().into()),
        ("time".into(), rfc3339(outgoing.created_at).into()),
    ];
    if let Some(subject) = outgoing.aggregate_id.as_deref().filter(|id| !id.is_empty()) {
        attributes.push(("subject".into(), subject.into()));
    }
    if let Some(key) = outgoing.key.as_deref().filter(|key| !key.is_empty()) {
        attributes.push(("partitionkey".into(), key.into()));
    }
    if let Some(aggregate_type) = &outgoing.aggregate_type {
        attributes.push(("aggregatetype".into(), aggregate_type.as_str().into()));
    }
    if let Some(version) = outgoing.schema_version {
        attributes.push(("schemaversion".into(), version.to_string().into()));
    }
    let extensions = outgoing
        .headers
        .iter()
        .filter(|(name, value)| is_extension(name, value));
    attributes.extend(extensions.map(|(name, value)| (name.into(), value.into())));
    attributes
}

/// Whether a header of the message becomes an extension.
fn is_extension(name: &str, value: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=20).contains(&name.len())
        && name.bytes().all(allowed)
        && !RESERVED.contains(&name)
        && !value.chars().any(char::is_control)
}

pub(crate) fn binary<'a>(outgoing: &'a Outgoing, source: &'a str, names: Names) -> Encoded<'a> {
    let mut headers: Vec<Attribute<'a>> = attributes(outgoing, source)
        .into_iter()
        .map(|(name, value)| (format!("{}{name}", names.prefix).into(), value))
        .collect();
    let mut hidden = Headers::new();
    for (name, value) in &outgoing.headers {
        // Without a prefix, attributes and headers share one namespace.
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
        content_type: outgoing.content_type().into(),
        headers,
        body: outgoing.payload.clone(),
    }
}

/// Whether a consumer would take a header for an attribute of the event, or for another header.
fn is_taken(name: &str, names: Names, headers: &[Attribute<'_>]) -> bool {
    let front = name.get(..names.prefix.len());
    let is_prefixed = front.is_some_and(|front| front.eq_ignore_ascii_case(names.prefix));
    let is_reserved = |own: &str| RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(own));
    is_prefixed && is_reserved(&name[names.prefix.len()..])
        || headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

pub(crate) fn structured<'a>(outgoing: &'a Outgoing, source: &'a str) -> Encoded<'a> {
    let mut body = serde_json::Map::new();
    for (name, value) in attributes(outgoing, source) {
        body.insert(name.into_owned(), value.into_owned().into());
    }
    let hidden = outgoing
        .headers
        .iter()
        .filter(|(name, value)| !is_extension(name, value));
    if let Some(hidden) = hidden.collect::<Headers>().to_json() {
        body.insert(HEADERS.into(), hidden.into());
    }
    body.insert("datacontenttype".into(), outgoing.content_type().into());
    let mut body = serde_json::Value::Object(body).to_string();
    body.pop();
    match json_text(outgoing) {
        Some(raw) => {
            body.push_str(",\"data\":");
            body.push_str(raw);
        }
        None => {
            body.push_str(",\"data_base64\":\"");
            STANDARD.encode_string(&outgoing.payload, &mut body);
            body.push('"');
        }
    }
    body.push('}');
    Encoded {
        content_type: "application/cloudevents+json; charset=utf-8".into(),
        headers: outgoing
            .headers
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        body: body.into(),
    }
}

/// The payload, if its content type says JSON and it parses as JSON. It is inserted as it is: digits and order stay.
fn json_text(outgoing: &Outgoing) -> Option<&str> {
    if !is_json(outgoing.content_type()) {
        return None;
    }
    let text = std::str::from_utf8(&outgoing.payload).ok()?;
    serde_json::from_str::<&RawValue>(text).is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sendoff::Uuid;
    use sendoff::store::{RowRef, Table};

    use super::*;

    fn outgoing(headers: &[(&str, &str)]) -> Outgoing {
        Outgoing {
            id: Uuid::nil(),
            topic: "order.placed".into(),
            payload: "{}".into(),
            headers: headers.iter().copied().collect(),
            ..Outgoing::blank(RowRef {
                table: Table::Ready,
                lane: 0,
                seq: 1,
                sink: None,
                id: sendoff::Uuid::nil().into(),
                locator: 0,
            })
        }
    }

    #[test]
    fn a_structured_event_has_all_headers_in_it() {
        let outgoing = outgoing(&[
            ("tenant", "7"),
            ("X-Tenant", "8"),
            ("id", "mine"),
            ("note", "two\nlines"),
            ("sendoffheaders", "mine, too"),
        ]);
        let encoded = structured(&outgoing, "/shop");
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
        let outgoing = outgoing(&[("tenant", "7")]);
        let text = String::from_utf8(structured(&outgoing, "/shop").body.to_vec()).unwrap();
        assert!(!text.contains(HEADERS), "{text}");
        for prefix in ["", "ce-"] {
            let encoded = binary(&outgoing, "/shop", Names { prefix });
            assert!(
                encoded.headers.iter().all(|(name, _)| !name.contains(HEADERS)),
                "{encoded:?}"
            );
        }
    }

    #[test]
    fn in_binary_mode_no_header_passes_for_an_attribute_and_none_is_lost() {
        let outgoing = outgoing(&[
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
            let encoded = binary(&outgoing, "/shop", Names { prefix });
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
                assert_eq!(of(name), outgoing.headers.get(name), "{prefix:?}");
            }
        }
    }
}
