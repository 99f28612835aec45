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
        ("key", text(&filter.key)),
        ("aggregate_type", text(&filter.aggregate_type)),
        ("aggregate_id", text(&filter.aggregate_id)),
        ("idempotency_key", text(&filter.idempotency_key)),
        ("leg", text(&filter.leg)),
        ("error", text(&filter.error)),
        ("payload", text(&filter.payload)),
        ("created_from", filter.created_from.map(from_time).into()),
        ("created_until", filter.created_until.map(from_time).into()),
    ]
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
