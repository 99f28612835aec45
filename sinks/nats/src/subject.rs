//! Subjects: tokens separated by dots.

use sendoff_wire::escape::{is_unsafe, percent};

/// The server closes a connection whose control line has more than 4096 bytes, by default. The line has the subject,
/// the subject of the acknowledgement and two numbers.
pub(crate) const LONGEST: usize = 3800;

/// Appends the content of a field, escaped so that it stays within one token; the dots of a topic still separate
/// tokens.
pub(crate) fn escape(field: &str, value: &str, out: &mut String) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if value
        .bytes()
        .all(|byte| is_plain(byte) || byte == b'.' && field == "topic")
    {
        out.push_str(value);
        return;
    }
    for letter in value.chars() {
        match letter {
            '.' if field == "topic" => out.push('.'),
            '.' | '*' | '>' | '$' | '%' => percent(letter, out),
            other if other.is_whitespace() || is_unsafe(other) => percent(other, out),
            other => out.push(other),
        }
    }
}

/// Checks a subject. The error is the cause.
pub(crate) fn check(subject: &str) -> Result<(), &'static str> {
    if subject.len() > LONGEST {
        return Err("it has more than 3800 bytes");
    }
    for token in subject.split('.') {
        match token {
            "" => return Err("it has an empty token"),
            "*" | ">" => return Err("it has a wildcard"),
            token if token.contains(|letter: char| letter.is_whitespace() || letter.is_control()) => {
                return Err("it has white space");
            }
            _ => {}
        }
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
    fn a_topic_keeps_its_tokens_and_nothing_else_makes_any() {
        assert_eq!(escaped("topic", "order.placed"), "order.placed");
        assert_eq!(escaped("key", "order.placed"), "order%2Eplaced");
        assert_eq!(escaped("header", "a b\r\nPUB x"), "a%20b%0D%0APUB%20x");
        assert_eq!(escaped("topic", "$JS.API.>"), "%24JS.API.%3E");
        assert_eq!(escaped("key", "*"), "%2A");
        assert_eq!(escaped("key", "ä\u{a0}%"), "ä%C2%A0%25");
    }

    #[test]
    fn no_field_makes_a_subject_that_is_unsafe() {
        proptest::proptest!(|(value: String)| {
            let key = escaped("key", &value);
            proptest::prop_assert!(!key.contains('.') && (key.is_empty() || check(&key).is_ok() || key.len() > LONGEST));
        });
    }

    #[test]
    fn what_is_no_subject_is_refused() {
        for bad in ["", ".", "a.", ".a", "a..b", "a.*", ">", "a b", &"a".repeat(3801)] {
            assert!(check(bad).is_err(), "{bad:.20}");
        }
        for good in ["a", "a.b", "a*b", "ä.b", &"a".repeat(3800)] {
            assert!(check(good).is_ok(), "{good:.20}");
        }
    }
}
