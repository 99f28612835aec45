//! Topics: levels separated by slashes.

use sendoff_wire::escape::{is_unsafe, percent};

/// Mosquitto closes the connection after a topic with more levels.
const MOST_LEVELS: usize = 200;
const LONGEST: usize = 65_535;

/// Appends the content of a field, escaped so that it stays within one level; the slashes of a message's topic still
/// separate levels.
pub(crate) fn escape(field: &str, value: &str, out: &mut String) {
    for letter in value.chars() {
        match letter {
            '/' if field == "topic" => out.push('/'),
            '/' | '+' | '#' | '$' | '%' => percent(letter, out),
            other if is_unsafe(other) => percent(other, out),
            other => out.push(other),
        }
    }
}

/// Checks a topic. The error is the cause.
pub(crate) fn check(topic: &str) -> Result<(), &'static str> {
    if topic.is_empty() {
        return Err("it is empty");
    }
    if topic.len() > LONGEST {
        return Err("it has more than 65535 bytes");
    }
    if topic.contains(['+', '#']) {
        return Err("it has a wildcard");
    }
    if topic.contains(is_unsafe) {
        return Err("it has a control character");
    }
    if topic.split('/').count() > MOST_LEVELS {
        return Err("it has more than 200 levels");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(field: &str, value: &str) -> String {
        let mut out = String::new();
        escape(field, value, &mut out);
        out
    }

    #[test]
    fn a_topic_keeps_its_levels_and_nothing_else_makes_any() {
        assert_eq!(escaped("topic", "order/placed.now"), "order/placed.now");
        assert_eq!(escaped("key", "a/b+#"), "a%2Fb%2B%23");
        assert_eq!(escaped("topic", "$SYS/#\0\n"), "%24SYS/%23%00%0A");
        assert_eq!(escaped("header", "ä 100%"), "ä 100%25");
    }

    #[test]
    fn no_field_makes_a_topic_that_a_broker_refuses() {
        proptest::proptest!(|(value: String)| {
            let key = escaped("key", &value);
            proptest::prop_assert!(!key.contains('/') && (key.is_empty() || check(&key).is_ok()));
        });
    }

    #[test]
    fn what_is_no_topic_is_refused() {
        for bad in ["", "a/+", "#", "a\nb", &"/".repeat(200), &"a".repeat(65_536)] {
            assert!(check(bad).is_err(), "{bad:.20}");
        }
        for good in ["a", "/", "a//b", &"/".repeat(199)] {
            assert!(check(good).is_ok(), "{good:.20}");
        }
    }
}
