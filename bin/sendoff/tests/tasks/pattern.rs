//! Patterns for the lines of a worker.

use std::collections::BTreeMap;

use serde_json::Value;

/// The values of names that start with `$`.
pub(crate) type Known = BTreeMap<String, Value>;

/// Whether a value matches a pattern. An object may have more entries than its pattern, and `null` matches a missing
/// entry. `"ANY"` is anything except `null`; a name that starts with `$` has the same value everywhere.
pub(crate) fn fits(pattern: &Value, value: &Value, known: &mut Known) -> bool {
    match (pattern, value) {
        (Value::String(name), _) if name == "ANY" => !value.is_null(),
        (Value::String(name), _) if name.starts_with('$') => match known.get(name) {
            Some(before) => before == value,
            None => {
                known.insert(name.clone(), value.clone());
                !value.is_null()
            }
        },
        (Value::Object(entries), Value::Object(_)) => {
            entries.iter().all(|(name, pattern)| fits(pattern, &value[name], known))
        }
        (Value::Array(patterns), Value::Array(values)) => {
            patterns.len() == values.len()
                && patterns
                    .iter()
                    .zip(values)
                    .all(|(each, value)| fits(each, value, known))
        }
        _ => pattern == value,
    }
}

#[test]
fn a_pattern_knows_what_its_names_stand_for() {
    use serde_json::json;
    let mut known = Known::new();
    let mut fit = |pattern: Value, value: Value| fits(&pattern, &value, &mut known);
    assert!(fit(json!({"id": "$a", "x": null}), json!({"id": 1, "more": 2})));
    assert!(!fit(json!({"id": "$a"}), json!({"id": 2})));
    assert!(fit(json!([{"of": "$a"}, "ANY"]), json!([{"of": 1}, false])));
    assert!(!fit(json!({"x": "ANY"}), json!({})));
    assert!(!fit(json!([1]), json!([1, 2])));
}
