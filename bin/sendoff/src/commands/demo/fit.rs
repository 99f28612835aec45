//! Fits text into the columns of a terminal. A number is shown whole or not at all.

use crate::output::Paint;

/// The columns of standard output; no limit if it is not a terminal.
pub(super) fn columns(terminal: bool) -> usize {
    if !terminal {
        return usize::MAX;
    }
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout())
        && size.ws_col > 0
    {
        return size.ws_col.into();
    }
    80
}

/// The positions of the spaces where a line may break: not within a number, whose thousands a space separates.
fn breaks(text: &str) -> impl Iterator<Item = usize> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    text.match_indices(' ').map(|(at, _)| at).filter(move |at| {
        let bytes = text.as_bytes();
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !(is_digit(before) && is_digit(bytes.get(at + 1)))
    })
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// The text in lines of at most `columns`. A word that is longer has a line of its own.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while width(rest) > columns {
        let mut fitting = None;
        for at in breaks(rest).filter(|at| !rest[..*at].trim().is_empty()) {
            if fitting.is_some() && width(&rest[..at]) > columns {
                break;
            }
            fitting = Some(at);
        }
        let Some(at) = fitting else { break };
        lines.push(&rest[..at]);
        rest = rest[at..].trim_start();
    }
    lines.push(rest);
    lines
}

/// Words beside a start: after it, wrapped below themselves; on a narrow terminal below it.
pub(super) fn beside(start: &str, words: &str, paint: Paint, columns: usize) -> String {
    const GAP: usize = 3;
    /// Fewer columns than this are too few for a column of text.
    const LEGIBLE: usize = 24;
    let indent = width(start) + GAP;
    let room = columns.saturating_sub(indent);
    if room >= LEGIBLE.min(width(words)) {
        let lines = wrap(words, room).into_iter().map(|line| paint.dim(line));
        let lines: Vec<String> = lines.collect();
        return format!("{start}{:GAP$}{}\n", "", lines.join(&format!("\n{:indent$}", "")));
    }
    let mut text = format!("{}\n", start.trim_end());
    for line in wrap(words, columns.saturating_sub(4)) {
        text += &format!("    {}\n", paint.dim(line));
    }
    text
}

/// The text, or as many of its words as fit into `columns` with an ellipsis after them.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let fits = |at: &usize| width(&text[..*at]) + 2 <= columns && !text[..*at].trim().is_empty();
    match breaks(text).filter(fits).last() {
        Some(at) => format!("{} …", &text[..at]),
        None if columns > 0 => "…".to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_breaks_between_words_and_not_within_a_number() {
        let text = "✓ 1 401 committed = 1 380 delivered";
        assert_eq!(wrap(text, 80), [text]);
        assert_eq!(wrap(text, 22), ["✓ 1 401 committed =", "1 380 delivered"]);
        assert_eq!(wrap(text, 6), ["✓", "1 401", "committed", "=", "1 380", "delivered"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("word", 0), ["word"]);
    }

    #[test]
    fn words_are_beside_their_start_or_below_it() {
        let beside = |columns| {
            beside(
                "  dead  1 234",
                "of these, given up; can be retried",
                Paint::plain(),
                columns,
            )
        };
        assert_eq!(beside(80), "  dead  1 234   of these, given up; can be retried\n");
        assert_eq!(
            beside(42),
            "  dead  1 234   of these, given up; can be\n                retried\n"
        );
        assert_eq!(
            beside(36),
            "  dead  1 234\n    of these, given up; can be\n    retried\n"
        );
    }

    #[test]
    fn what_does_not_fit_is_left_out_word_by_word() {
        let text = "   ✓ order 1 234: packed";
        assert_eq!(cut(text, 24), text);
        assert_eq!(cut(text, 23), "   ✓ order 1 234: …");
        assert_eq!(cut(text, 18), "   ✓ order …");
        assert_eq!(cut(text, 6), "   ✓ …");
        assert_eq!(cut(text, 5), "…");
        assert_eq!(cut(text, 0), "");
    }
}
