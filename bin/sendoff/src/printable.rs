//! Texts of messages, safe to print: they must not control the terminal, break a line, or show as something else.

/// The text with control characters, line breaks, and characters that have no width or turn the direction of writing escaped.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, |_| false)
}

/// The same for a text of several lines: line breaks and tabs stay.
pub(crate) fn printable_lines(text: &str) -> String {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let deceives = |c: char| (c.is_control() || is_invisible(c)) && !stays(c);
    if !text.contains(deceives) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if deceives(c) {
            clean.extend(c.escape_default());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// Characters without a width, and those that turn the direction of the text after them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_cannot_steer_a_terminal() {
        assert_eq!(printable("a\x1b[31m\tb\n"), "a\\u{1b}[31m\\tb\\n");
        assert_eq!(printable("\u{9b}2J"), "\\u{9b}2J");
        assert_eq!(printable("grün ✓"), "grün ✓");
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(printable("pay\u{202e}dlos"), "pay\\u{202e}dlos");
        assert_eq!(printable("a\u{200b}b\u{feff}"), "a\\u{200b}b\\u{feff}");
        assert_eq!(printable("\u{2066}x\u{2069}\u{2028}"), "\\u{2066}x\\u{2069}\\u{2028}");
    }

    #[test]
    fn lines_stay_where_they_are_wanted() {
        assert_eq!(
            printable_lines("{\n\t\"a\": 1\r\n}\u{202e}"),
            "{\n\t\"a\": 1\\r\n}\\u{202e}"
        );
    }
}
