//! The options of a row, in the form that a Celery sink expects.

use std::fmt;

use sendoff::{Error, ErrorKind, Result};
use sendoff_celery::OPTIONS;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// What only tells a producer in Python how to send. A relay has settings of its own for it.
const PRODUCERS_OWN: &[&str] = &[
    "add_to_parent",
    "app",
    "body",
    "confirm_timeout",
    "connection",
    "declare",
    "event_dispatcher",
    "immediate",
    "mandatory",
    "producer",
    "publisher",
    "result_cls",
    "retry",
    "retry_policy",
    "router",
    "task_type",
    "timeout",
];

/// The options without what is a producer's own. Names that Celery does not know become properties of the message, as
/// Celery does with them; `task_id` is added if it is given. Values stay byte for byte.
pub(crate) fn for_sink(options: &str, task_id: Option<&str>) -> Result<String> {
    let Entries(entries) = serde_json::from_str(options).map_err(|error| {
        Error::new(ErrorKind::Invalid, "the options of the task cannot be read")
            .because(format!("the options are not a JSON object: {error}"))
            .next_step("correct the row, or delete the row")
    })?;
    let stamps: Vec<String> = entries
        .iter()
        .find(|(name, _)| name == "stamped_headers")
        .and_then(|(_, value)| serde_json::from_str(value.get()).ok())
        .unwrap_or_default();
    let (mut kept, mut properties) = (String::new(), String::new());
    for (name, value) in &entries {
        if PRODUCERS_OWN.contains(&name.as_str()) || (name == "task_id" && task_id.is_some()) {
            continue;
        }
        let known = OPTIONS.contains(&name.as_str()) && name != "properties";
        let into = if known || stamps.contains(name) {
            &mut kept
        } else {
            &mut properties
        };
        push(into, name, value.get());
    }
    if let Some(task_id) = task_id {
        push(&mut kept, "task_id", &text(task_id));
    }
    if !properties.is_empty() {
        push(&mut kept, "properties", &format!("{{{properties}}}"));
    }
    Ok(format!("{{{kept}}}"))
}

fn push(into: &mut String, name: &str, json: &str) {
    if !into.is_empty() {
        into.push(',');
    }
    into.push_str(&text(name));
    into.push(':');
    into.push_str(json);
}

fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The entries of an object in their order.
struct Entries(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(options: &str, task_id: Option<&str>, expected: &str) {
        assert_eq!(for_sink(options, task_id).unwrap(), expected);
    }

    #[test]
    fn what_is_a_producers_own_stays_behind() {
        becomes(
            r#"{"retry": true, "ignore_result": false}"#,
            None,
            r#"{"ignore_result":false}"#,
        );
        becomes(r#"{"retry_policy": {"max_retries": 7}, "timeout": 3}"#, None, "{}");
    }

    #[test]
    fn values_keep_their_digits_and_order() {
        let options = r#"{"queue":"a","expires":1e2,"eta":"2031-05-06T07:08:09.123456+00:00","priority":3}"#;
        becomes(options, None, options);
    }

    #[test]
    fn the_name_to_route_by_is_kept() {
        let options = r#"{"route_name":"shop.urgent"}"#;
        becomes(options, None, options);
    }

    #[test]
    fn stamps_stay_and_unknown_names_become_properties() {
        becomes(
            r#"{"stamped_headers": ["m"], "m": "1", "x": [1, 2], "y": null}"#,
            None,
            r#"{"stamped_headers":["m"],"m":"1","properties":{"x":[1, 2],"y":null}}"#,
        );
    }

    #[test]
    fn a_task_id_is_added() {
        becomes(
            r#"{"queue":"a"}"#,
            Some("night\"ly"),
            r#"{"queue":"a","task_id":"night\"ly"}"#,
        );
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for bad in ["[]", "null", "{", "3"] {
            assert_eq!(for_sink(bad, None).unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
}
