//! A filter as the values of `filter.sql`.

use rusqlite::types::Value;
use sendoff::Uuid;
use sendoff::store::Filter;

use crate::clock::from_time;

/// The values of `filter.sql`, and those that only dead letters have.
pub(super) fn values(filter: &Filter) -> Vec<Value> {
    let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
    let time = |time: Option<std::time::SystemTime>| time.map_or(Value::Null, |at| Value::Integer(from_time(at)));
    let pattern = |text: &Option<String>| text.as_deref().map_or(Value::Null, |text| Value::Text(glob(text)));
    vec![
        Value::Text(spellings(&filter.ids)),
        filter
            .status
            .map_or(Value::Null, |status| Value::Text(status.as_str().to_owned())),
        pattern(&filter.topic),
        pattern(&filter.key),
        pattern(&filter.aggregate_type),
        pattern(&filter.aggregate_id),
        text(&filter.idempotency_key),
        text(&filter.sink),
        text(&filter.error),
        text(&filter.payload),
        time(filter.created_from),
        time(filter.created_until),
        text(&filter.search),
        paths(filter),
        text(&filter.reason),
        time(filter.died_from),
        time(filter.died_until),
    ]
}

/// Values in the payload, with their paths as SQLite writes them.
fn paths(filter: &Filter) -> Value {
    let wanted = filter.payload_paths.iter();
    let wanted: Vec<_> = wanted
        .map(|wanted| serde_json::json!({"path": wanted.in_sql(), "value": wanted.value}))
        .collect();
    if wanted.is_empty() {
        return Value::Null;
    }
    Value::Text(serde_json::Value::from(wanted).to_string())
}

/// A limit.
pub(super) fn number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A filter as the audit keeps it.
pub(crate) fn as_asked(filter: &Filter) -> String {
    // Only a time before the epoch does not serialise, and none of these is.
    serde_json::to_string(filter).unwrap_or_else(|_| "{}".to_owned())
}

/// The usual ways to write these ids, as a JSON array: programs in other languages do not all write them as Rust does,
/// and an index finds only what is written the same.
pub(crate) fn spellings(ids: &[Uuid]) -> String {
    let all = ids.iter().flat_map(|id| {
        let (hyphenated, simple) = (id.hyphenated().to_string(), id.simple().to_string());
        [hyphenated.to_uppercase(), simple.to_uppercase(), hyphenated, simple]
    });
    all.map(serde_json::Value::from)
        .collect::<serde_json::Value>()
        .to_string()
}

/// A topic with `*` as a pattern of SQLite's GLOB, which minds upper and lower case, as LIKE does not.
pub(super) fn glob(topic: &str) -> String {
    topic.replace('[', "[[]").replace('?', "[?]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_star_is_a_wildcard() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let fits = |topic: &str, pattern: &str| {
            let values = [topic.to_owned(), glob(pattern)];
            connection
                .query_row("SELECT ?1 GLOB ?2", values, |row| row.get::<_, bool>(0))
                .unwrap()
        };
        assert!(fits("order.placed", "order.*"));
        assert!(!fits("Order.placed", "order.*"));
        assert!(fits("a[b]?c", "a[b]?c"));
        assert!(!fits("ab", "a?"));
        assert!(!fits("ab", "[a]b"));
        assert!(fits("a]b", "a]b"));
    }
}
