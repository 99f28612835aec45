//! A filter as the values of the statements that take one.

use mysql_async::Value;
use sendoff::store::{Filter, Status};

use crate::decode::from_time;

/// One value a name in `filter.sql`.
pub(super) fn values(filter: &Filter) -> Vec<(&'static str, Value)> {
    let ids: Vec<String> = filter.ids.iter().map(ToString::to_string).collect();
    let ids = (!ids.is_empty()).then(|| serde_json::Value::from(ids).to_string());
    let text = |text: &Option<String>| Value::from(text.as_deref());
    vec![
        ("ids", ids.into()),
        ("status", filter.status.map(Status::as_str).into()),
        ("topic", filter.topic.as_deref().map(like).into()),
        ("key", filter.key.as_deref().map(like).into()),
        ("aggregate_type", filter.aggregate_type.as_deref().map(like).into()),
        ("aggregate_id", filter.aggregate_id.as_deref().map(like).into()),
        ("idempotency_key", text(&filter.idempotency_key)),
        ("sink", text(&filter.sink)),
        ("error", text(&filter.error)),
        ("payload", text(&filter.payload)),
        ("created_from", filter.created_from.map(from_time).into()),
        ("created_until", filter.created_until.map(from_time).into()),
        ("search", text(&filter.search)),
        ("payload_paths", paths(filter).into()),
        ("reason", text(&filter.reason)),
        ("died_from", filter.died_from.map(from_time).into()),
        ("died_until", filter.died_until.map(from_time).into()),
    ]
}

/// Values in the payload, with their paths as the server writes them.
fn paths(filter: &Filter) -> Option<String> {
    let wanted = filter.payload_paths.iter();
    let wanted: Vec<_> = wanted
        .map(|wanted| serde_json::json!({"path": wanted.in_sql(), "value": hex(&wanted.value)}))
        .collect();
    (!wanted.is_empty()).then(|| serde_json::Value::from(wanted).to_string())
}

/// As digits: the server may have another character set for texts in JSON.
fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// `*` for any text, and nothing else is special.
pub(super) fn like(topic: &str) -> String {
    let mut pattern = String::with_capacity(topic.len() + 4);
    for c in topic.chars() {
        match c {
            '*' => pattern.push('%'),
            '%' | '_' | '\\' => pattern.extend(['\\', c]),
            _ => pattern.push(c),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_star_is_special_in_a_topic() {
        assert_eq!(like("order.*"), "order.%");
        assert_eq!(like("50%_a\\b"), "50\\%\\_a\\\\b");
    }
}
