//! What a consumer understands of what it has received, by each format's own rules. Written apart from what the sinks
//! write with, so that a mistake there is seen here.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use sendoff::Uuid;
use sendoff_wire::Format;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Capabilities, Received};

/// One copy of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) id: Uuid,
    pub(super) topic: String,
    pub(super) key: Option<String>,
    pub(super) created_at: String,
    pub(super) content_type: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) payload: Vec<u8>,
}

/// The extension of CloudEvents for headers that cannot be extensions themselves.
const HIDDEN: &str = "sendoffheaders";

type Fields = BTreeMap<String, Box<RawValue>>;

impl Copy {
    pub(super) fn read(received: &Received, format: Format, capabilities: Capabilities) -> Self {
        let headers: BTreeMap<String, String> = received
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
            .collect();
        assert_eq!(
            headers.len(),
            received.headers.len(),
            "a header came twice: {:?}",
            received.headers
        );
        let headers = decoded(headers);
        match format {
            Format::Raw => from_headers(
                received,
                headers,
                ["sendoff-id", "sendoff-topic", "sendoff-key", "sendoff-created-at"],
            ),
            Format::CloudEventsBinary => {
                let prefix = capabilities.attribute_prefix.to_ascii_lowercase();
                let names = ["id", "type", "partitionkey", "time"].map(|name| format!("{prefix}{name}"));
                assert_eq!(
                    headers.get(&format!("{prefix}specversion")).map(String::as_str),
                    Some("1.0")
                );
                assert!(
                    headers.contains_key(&format!("{prefix}source")),
                    "an event without a source: {headers:?}"
                );
                let hidden = headers
                    .get(&format!("{prefix}{HIDDEN}"))
                    .map(|text| object_of_strings(text));
                let mut copy = from_headers(received, headers, names.each_ref().map(String::as_str));
                copy.headers.extend(hidden.into_iter().flatten());
                copy
            }
            Format::Envelope => from_envelope(&fields(received)),
            Format::CloudEvents => from_event(&fields(received)),
        }
    }
}

/// Headers that had to be encoded for the protocol are named in two others.
fn decoded(mut headers: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut named = |list: &str| -> Vec<String> {
        let names = headers.remove(list).unwrap_or_default().to_ascii_lowercase();
        names.split(',').map(str::to_owned).collect()
    };
    let (values, names) = (named("sendoff-encoded"), named("sendoff-encoded-names"));
    let decode = |is_encoded: bool, text: String| match is_encoded {
        true => percent_decode_str(&text).decode_utf8().expect("UTF-8").into_owned(),
        false => text,
    };
    let pair = |(name, value): (String, String)| {
        let value = decode(values.contains(&name), value);
        (decode(names.contains(&name), name), value)
    };
    headers.into_iter().map(pair).collect()
}

fn from_headers(received: &Received, headers: BTreeMap<String, String>, names: [&str; 4]) -> Copy {
    let get = |name: &str| headers.get(name).cloned();
    let needed = |name: &str| get(name).unwrap_or_else(|| panic!("no {name} in {headers:?}"));
    let [id, topic, key, created_at] = names;
    Copy {
        id: needed(id).parse().expect("an id"),
        topic: needed(topic),
        key: get(key),
        created_at: needed(created_at),
        content_type: received.content_type.clone(),
        payload: received.body.to_vec(),
        headers,
    }
}

fn fields(received: &Received) -> Fields {
    let body = String::from_utf8_lossy(&received.body);
    serde_json::from_slice(&received.body).unwrap_or_else(|error| panic!("not a JSON object ({error}): {body:.200}"))
}

fn text(fields: &Fields, name: &str) -> Option<String> {
    let raw = fields.get(name)?;
    Some(serde_json::from_str(raw.get()).unwrap_or_else(|_| panic!("{name} is no string: {}", raw.get())))
}

fn needed(fields: &Fields, name: &str) -> String {
    text(fields, name).unwrap_or_else(|| panic!("no {name} in {:?}", fields.keys()))
}

/// The bytes of the payload: embedded JSON as it stands, or base64.
fn payload(fields: &Fields, json: &str, base64: &str) -> Vec<u8> {
    match (fields.get(json), text(fields, base64)) {
        (Some(raw), None) => raw.get().as_bytes().to_vec(),
        (None, Some(base64)) => STANDARD.decode(base64).expect("base64"),
        _ => panic!("not one of {json} and {base64} in {:?}", fields.keys()),
    }
}

fn from_envelope(fields: &Fields) -> Copy {
    let headers = fields.get("headers").expect("headers");
    Copy {
        id: needed(fields, "id").parse().expect("an id"),
        topic: needed(fields, "topic"),
        key: text(fields, "key"),
        created_at: needed(fields, "created_at"),
        content_type: text(fields, "content_type"),
        headers: object_of_strings(headers.get()),
        payload: payload(fields, "payload", "payload_base64"),
    }
}

fn object_of_strings(text: &str) -> BTreeMap<String, String> {
    serde_json::from_str(text).expect("headers are an object of strings")
}

/// All is in the event, also where the protocol has room for headers beside it.
fn from_event(fields: &Fields) -> Copy {
    assert_eq!(needed(fields, "specversion"), "1.0");
    needed(fields, "source");
    let mut headers = BTreeMap::new();
    for (name, raw) in fields {
        if let Ok(Value::String(value)) = serde_json::from_str(raw.get()) {
            headers.insert(name.clone(), value);
        }
    }
    let hidden = text(fields, HIDDEN).map(|text| object_of_strings(&text));
    headers.extend(hidden.into_iter().flatten());
    Copy {
        id: needed(fields, "id").parse().expect("an id"),
        topic: needed(fields, "type"),
        key: text(fields, "partitionkey"),
        created_at: needed(fields, "time"),
        content_type: text(fields, "datacontenttype"),
        headers,
        payload: payload(fields, "data", "data_base64"),
    }
}
