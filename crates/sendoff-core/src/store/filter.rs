//! Filters that select messages.

use std::time::SystemTime;

use uuid::Uuid;

use super::{Status, Stored};

/// Selects messages; all fields that are set must match.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Selects messages with one of these ids. Empty: any id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Uuid>,
    /// Selects messages with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Selects messages of this topic; `*` matches any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Selects messages with this ordering key; `*` matches any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Selects messages with this aggregate type; `*` matches any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate_type: Option<String>,
    /// Selects messages with this aggregate id; `*` matches any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate_id: Option<String>,
    /// Selects messages with this idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Selects deliveries to this sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Selects messages whose last error contains this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Selects messages whose payload contains these bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Selects messages whose payload is JSON with these values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub payload_paths: Vec<PayloadPath>,
    /// Selects messages whose id starts with this text, or whose topic, key, aggregate, idempotency key or last error
    /// contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Selects dead letters with this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Selects messages created at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_from: Option<SystemTime>,
    /// Selects messages created before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_until: Option<SystemTime>,
    /// Selects dead letters that died at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub died_from: Option<SystemTime>,
    /// Selects dead letters that died before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub died_until: Option<SystemTime>,
    /// The group of failures that an operator chose, for the audit. It selects nothing: `ids` has the ids of its
    /// messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A value in a JSON payload. A payload that is not JSON has none.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PayloadPath {
    /// The field names from the outermost to the innermost. Digits are a position in an array.
    pub path: Vec<String>,
    /// The wanted value: a text without quotes, anything else as JSON.
    pub value: String,
}

impl PayloadPath {
    /// The path in the syntax of MySQL and SQLite: `$."customer"."id"`.
    pub fn in_sql(&self) -> String {
        self.path.iter().fold("$".to_owned(), |mut text, part| {
            if is_position(part) {
                text.extend(["[", part, "]"]);
            } else {
                text.extend([".\"", &part.replace('\\', "\\\\").replace('"', "\\\""), "\""]);
            }
            text
        })
    }

    fn fits(&self, payload: &serde_json::Value) -> bool {
        let found = self.path.iter().try_fold(payload, |value, part| match value {
            serde_json::Value::Array(values) => values.get(part.parse::<usize>().ok()?),
            serde_json::Value::Object(fields) if !is_position(part) => fields.get(part),
            _ => None,
        });
        match found {
            Some(serde_json::Value::String(text)) => *text == self.value,
            Some(serde_json::Value::Array(_) | serde_json::Value::Object(_)) | None => false,
            Some(other) => serde_json::to_string(other).is_ok_and(|text| text == self.value),
        }
    }
}

fn is_position(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

impl Filter {
    /// Whether a row matches. For a store that has the row with its whole payload in memory.
    pub fn fits(&self, stored: &Stored) -> bool {
        (self.ids.is_empty() || stored.id.is_some_and(|id| self.ids.contains(&id)))
            && self.status.is_none_or(|status| status == stored.status)
            && self.fits_dead(stored)
            && self.fits_texts(stored)
            && self.fits_payload(&stored.payload)
    }

    /// Whether a row matches, without a check of ids, status and payload, and of fields that only dead letters have.
    pub fn fits_texts(&self, stored: &Stored) -> bool {
        let like = |wanted: &Option<String>, value: Option<&str>| {
            wanted
                .as_deref()
                .is_none_or(|wanted| value.is_some_and(|value| is_like(wanted, value)))
        };
        let error = stored.last_error.as_deref();
        like(&self.topic, Some(&stored.topic))
            && like(&self.key, stored.key.as_deref())
            && like(&self.aggregate_type, stored.aggregate_type.as_deref())
            && like(&self.aggregate_id, stored.aggregate_id.as_deref())
            && (self.idempotency_key.is_none() || self.idempotency_key == stored.idempotency_key)
            && self.sink.as_deref().is_none_or(|sink| sink == stored.sink)
            && self
                .error
                .as_deref()
                .is_none_or(|part| error.is_some_and(|error| error.contains(part)))
            && self.search.as_deref().is_none_or(|part| is_found(part, stored))
            && self.created_from.is_none_or(|from| stored.created_at >= from)
            && self.created_until.is_none_or(|until| stored.created_at < until)
    }

    fn fits_dead(&self, stored: &Stored) -> bool {
        if self.reason.is_none() && self.died_from.is_none() && self.died_until.is_none() {
            return true;
        }
        stored.status == Status::Dead
            && (self.reason.is_none() || self.reason == stored.detail)
            && self.died_from.is_none_or(|from| stored.ended_at >= Some(from))
            && self.died_until.is_none_or(|until| stored.ended_at < Some(until))
    }

    fn fits_payload(&self, payload: &[u8]) -> bool {
        self.payload
            .as_deref()
            .is_none_or(|part| part.is_empty() || payload.windows(part.len()).any(|window| window == part.as_bytes()))
            && (self.payload_paths.is_empty()
                || serde_json::from_slice(payload)
                    .is_ok_and(|json| self.payload_paths.iter().all(|wanted| wanted.fits(&json))))
    }
}

fn is_found(part: &str, stored: &Stored) -> bool {
    let texts = [
        Some(&stored.topic),
        stored.key.as_ref(),
        stored.aggregate_type.as_ref(),
        stored.aggregate_id.as_ref(),
        stored.idempotency_key.as_ref(),
        stored.last_error.as_ref(),
    ];
    texts.into_iter().flatten().any(|text| text.contains(part))
        || stored
            .id
            .is_some_and(|id| id.to_string().starts_with(&part.to_ascii_lowercase()))
}

/// Whether `text` matches `wanted`, in which `*` stands for any text.
fn is_like(wanted: &str, text: &str) -> bool {
    let mut parts = wanted.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_nothing_else_does() {
        for (wanted, text, expected) in [
            ("order.*", "order.placed", true),
            ("order.*", "orders", false),
            ("*", "", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*a", "a", false),
            ("order", "order.placed", false),
            ("100%", "100x", false),
        ] {
            assert_eq!(is_like(wanted, text), expected, "{wanted} {text}");
        }
    }

    #[test]
    fn values_in_payloads_are_texts_or_json() {
        let payload = serde_json::json!({"a": {"b": [1, "two", true, null, 2.5]}, "t": "1", "0": 7});
        for (path, value, expected) in [
            ("a.b.0", "1", true),
            ("a.b.1", "two", true),
            ("a.b.2", "true", true),
            ("a.b.3", "null", true),
            ("a.b.4", "2.5", true),
            ("a.b.5", "null", false),
            ("t", "1", true),
            ("t", "\"1\"", false),
            ("a.b", "[1]", false),
            ("0", "7", false),
        ] {
            let wanted = PayloadPath {
                path: path.split('.').map(str::to_owned).collect(),
                value: value.to_owned(),
            };
            assert_eq!(wanted.fits(&payload), expected, "{path}={value}");
        }
    }

    #[test]
    fn a_path_is_quoted_for_sql() {
        let path = ["a", "0", "b\"c"].map(str::to_owned).to_vec();
        let value = String::new();
        assert_eq!(PayloadPath { path, value }.in_sql(), "$.\"a\"[0].\"b\\\"c\"");
    }
}
