//! The options of a task.

/// The names of all options that a stored task may have.
///
/// Celery options that only matter to a producer in Python (`connection`, `producer`, `retry`, `retry_policy`, …) are
/// not included: the relay has its own settings. `properties` is not a Celery option: it holds message properties that
/// Celery would take from unknown options.
pub const OPTIONS: &[&str] = &[
    "argsrepr",
    "chain",
    "chord",
    "compression",
    "countdown",
    "delivery_mode",
    "eta",
    "exchange",
    "exchange_type",
    "expires",
    "group_id",
    "group_index",
    "headers",
    "ignore_result",
    "kwargsrepr",
    "link",
    "link_error",
    "parent_id",
    "priority",
    "properties",
    "queue",
    "replaced_task_nesting",
    "reply_to",
    "retries",
    "root_id",
    "route_name",
    "routing_key",
    "serializer",
    "shadow",
    "soft_time_limit",
    "stamped_headers",
    "task_id",
    "time_limit",
];

/// Options as JSON texts, in the order they were set.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Options(Vec<(String, String)>);

impl Options {
    pub(super) fn set(&mut self, name: &str, json: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, value)) => *value = json,
            None => self.0.push((name.to_owned(), json)),
        }
    }

    pub(super) fn set_text(&mut self, name: &str, text: &str) {
        self.set(name, text_to_json(text));
    }

    pub(super) fn to_json(&self) -> String {
        object(self.0.iter().map(|(name, json)| (name.as_str(), json.as_str())))
    }
}

/// A string as JSON.
pub(super) fn text_to_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// An object from names and JSON texts.
pub(super) fn object<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let entries: Vec<String> = entries
        .map(|(name, json)| format!("{}:{json}", text_to_json(name)))
        .collect();
    format!("{{{}}}", entries.join(","))
}

/// An array from JSON texts.
pub(super) fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_there_once() {
        assert!(OPTIONS.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_later_value_takes_the_place_of_an_earlier_one() {
        let mut options = Options::default();
        options.set_text("queue", "a\"");
        options.set("priority", "3".to_owned());
        options.set_text("queue", "b");
        assert_eq!(options.to_json(), r#"{"queue":"b","priority":3}"#);
    }
}
