//! A message as one line of JSON, the same in every sink that writes JSON lines.
//!
//! ```json
//! {"id":"…","topic":"order.placed","key":"customer-7","headers":{},"content_type":"application/json",
//!  "created_at":"2026-01-31T12:00:00.000000Z","attempts":0,"payload":{"total":"12.50"}}
//! ```
//!
//! (on one line). `key`, `aggregate_type`, `aggregate_id` and `schema_version` are present if the message has them.
//!
//! The payload stays byte-identical. It is embedded as `payload` when its content type is JSON, it is valid JSON, and
//! it has no line break and no surrounding white space; otherwise it is `payload_base64`. So indented JSON is encoded
//! as base64: it would break the line, and compacting it would change its bytes.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{Headers, Outgoing};

/// A message as JSON; see [the module](self) for its format.
#[derive(Debug, Serialize)]
pub struct Envelope<'a> {
    id: Uuid,
    topic: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(serialize_with = "headers_as_object")]
    headers: &'a Headers,
    content_type: &'a str,
    #[serde(serialize_with = "time_as_text")]
    created_at: SystemTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_version: Option<i32>,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

impl<'a> Envelope<'a> {
    /// The beginning of every line of JSON.
    pub const START: &'static str = "{\"id\":\"";

    /// The envelope of a message.
    pub fn of(outgoing: &'a Outgoing) -> Self {
        let payload = embeddable(outgoing);
        Self {
            id: outgoing.id,
            topic: &outgoing.topic,
            key: outgoing.key.as_deref(),
            headers: &outgoing.headers,
            content_type: outgoing.content_type(),
            created_at: outgoing.created_at,
            aggregate_type: outgoing.aggregate_type.as_deref(),
            aggregate_id: outgoing.aggregate_id.as_deref(),
            schema_version: outgoing.schema_version,
            attempts: outgoing.attempts,
            payload,
            payload_base64: payload.is_none().then(|| STANDARD.encode(&outgoing.payload)),
        }
    }

    /// Writes the message as one line of JSON to `lines`, with a line break at the end.
    ///
    /// # Errors
    /// Only the errors of `lines`.
    pub fn write_line(&self, lines: &mut impl std::io::Write) -> std::io::Result<()> {
        serde_json::to_writer(&mut *lines, self)?;
        lines.write_all(b"\n")
    }
}

/// Whether a content type is JSON: `application/json`, `text/json`, or anything that ends in `+json`, with or
/// without parameters.
pub fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let is = |name: &str| essence.eq_ignore_ascii_case(name);
    let suffix = essence
        .len()
        .checked_sub("+json".len())
        .and_then(|at| essence.get(at..));
    is("application/json") || is("text/json") || suffix.is_some_and(|end| end.eq_ignore_ascii_case("+json"))
}

/// A point in time as RFC 3339 in UTC, with microseconds, which is the precision of the databases.
pub fn rfc3339(at: SystemTime) -> String {
    let limit = if at < SystemTime::UNIX_EPOCH {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    format!("{:.6}", Timestamp::try_from(at).unwrap_or(limit))
}

fn embeddable(outgoing: &Outgoing) -> Option<&RawValue> {
    if !is_json(outgoing.content_type()) {
        return None;
    }
    let text = std::str::from_utf8(&outgoing.payload).ok()?;
    // Some line readers also treat a carriage return as a line end.
    if text.contains(['\n', '\r']) {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    // The parser drops the white space around a value.
    (raw.get().len() == text.len()).then_some(raw)
}

fn headers_as_object<S: Serializer>(headers: &&Headers, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(headers.iter())
}

fn time_as_text<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::store::{RowRef, Table};

    fn outgoing(content_type: Option<&str>, payload: impl Into<Bytes>) -> Outgoing {
        Outgoing {
            id: Uuid::nil(),
            topic: "order.placed".into(),
            payload: payload.into(),
            content_type: content_type.map(Into::into),
            created_at: SystemTime::UNIX_EPOCH + Duration::from_micros(1_769_860_800_000_001),
            ..Outgoing::blank(RowRef {
                table: Table::Ready,
                lane: 0,
                seq: 1,
                sink: None,
                id: crate::Uuid::nil().into(),
                locator: 0,
            })
        }
    }

    fn line(outgoing: &Outgoing) -> String {
        let mut lines = Vec::new();
        Envelope::of(outgoing).write_line(&mut lines).unwrap();
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn a_bare_message_has_only_what_it_needs() {
        assert_eq!(
            line(&outgoing(None, r#"{"a": 1.50}"#)),
            concat!(
                r#"{"id":"00000000-0000-0000-0000-000000000000","topic":"order.placed","headers":{},"#,
                r#""content_type":"application/json","created_at":"2026-01-31T12:00:00.000001Z","#,
                r#""attempts":0,"payload":{"a": 1.50}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_full_message_has_everything() {
        let mut full = outgoing(Some("application/cloudevents+json; charset=utf-8"), "[]");
        full.key = Some("customer \"7\"\n".into());
        full.headers.insert("traceparent", "00-ab");
        full.aggregate_type = Some("order".into());
        full.aggregate_id = Some("42".into());
        full.schema_version = Some(3);
        full.attempts = 2;
        let text = line(&full);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["key"], "customer \"7\"\n");
        assert_eq!(json["headers"]["traceparent"], "00-ab");
        assert_eq!(
            (&json["aggregate_type"], &json["aggregate_id"]),
            (&"order".into(), &"42".into())
        );
        assert_eq!((&json["schema_version"], &json["attempts"]), (&3.into(), &2.into()));
        assert_eq!(json["payload"], serde_json::json!([]));
        assert!(text.starts_with(Envelope::START) && text.matches('\n').count() == 1);
    }

    #[test]
    fn a_payload_that_would_not_stay_as_it_is_comes_as_base64() {
        for (content_type, payload) in [
            (None, "{\n  \"a\": 1\n}".as_bytes()),
            (None, b"{\"a\":1}\r"),
            (None, b" {\"a\":1}"),
            (None, b"{\"a\":1} "),
            (None, b""),
            (None, b"{\"a\":"),
            (None, b"1 2"),
            (None, b"\"\xff\""),
            (None, b"\xef\xbb\xbf{}"),
            (Some("text/plain"), b"{\"a\":1}"),
            (Some("application/octet-stream"), b"\0\x01\xff"),
        ] {
            let json: Value = serde_json::from_str(&line(&outgoing(content_type, payload.to_vec()))).unwrap();
            assert!(json.get("payload").is_none(), "{payload:?}");
            assert_eq!(
                STANDARD.decode(json["payload_base64"].as_str().unwrap()).unwrap(),
                payload
            );
        }
    }

    #[test]
    fn json_is_embedded_byte_for_byte() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for payload in [
            "null",
            "12345678901234567890.10",
            r#""\ud800""#,
            r#"{"b":1,"a":2,"b":3}"#,
            "\"\u{2028}\"",
            &deep,
        ] {
            let text = line(&outgoing(None, payload.to_owned()));
            assert!(text.ends_with(&format!("\"payload\":{payload}}}\n")), "{payload:.50}");
        }
    }

    #[test]
    fn content_types_of_json_are_known() {
        for json in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "text/json",
            "application/vnd.x+json",
        ] {
            assert!(is_json(json), "{json}");
        }
        for other in ["", "json", "application/jsonl", "text/plain; x=+json", "é+jso"] {
            assert!(!is_json(other), "{other}");
        }
    }

    #[test]
    fn times_out_of_range_do_not_panic() {
        assert_eq!(rfc3339(SystemTime::UNIX_EPOCH), "1970-01-01T00:00:00.000000Z");
        rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 50));
        rfc3339(SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 50));
    }

    proptest! {
        #[test]
        fn every_message_is_one_line_with_its_own_bytes(payload: Vec<u8>, topic: String, key: Option<String>) {
            let mut message = outgoing(None, payload.clone());
            message.topic = topic.clone();
            message.key = key.clone();
            let text = line(&message);
            prop_assert_eq!(text.find('\n'), Some(text.len() - 1));
            prop_assert!(!text.contains('\r'));
            let json: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(json["topic"].as_str(), Some(topic.as_str()));
            prop_assert_eq!(json.get("key").and_then(Value::as_str), key.as_deref());
            match json.get("payload_base64") {
                Some(base64) => prop_assert_eq!(STANDARD.decode(base64.as_str().unwrap()).unwrap(), payload),
                None => {
                    let end = [b"\"payload\":", payload.as_slice(), b"}\n"].concat();
                    prop_assert!(text.as_bytes().ends_with(&end));
                }
            }
        }
    }
}
