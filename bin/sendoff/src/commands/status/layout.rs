//! Lines that fit the width: words are wrapped, never broken.

use crate::output::{Paint, Tone, printable};

/// A line without its colours, and which part of it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    text: String,
    /// How many characters at the beginning, after the indent, have the tone.
    toned: usize,
    tone: Tone,
}

impl Line {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            toned: 0,
            tone: Tone::Plain,
        }
    }

    /// A line whose first `toned` characters after the indent have a tone.
    fn toned(text: String, toned: usize, tone: Tone) -> Self {
        Self { text, toned, tone }
    }

    #[cfg(test)]
    fn text(&self) -> &str {
        &self.text
    }

    /// The line with its colours.
    pub(super) fn painted(&self, paint: Paint) -> String {
        let indent = self.text.len() - self.text.trim_start().len();
        let rest = &self.text[indent..];
        let end = rest.char_indices().nth(self.toned).map_or(rest.len(), |(at, _)| at);
        let (first, after) = rest.split_at(end);
        let first = match self.tone {
            Tone::Plain => first.to_owned(),
            Tone::Good => paint.good(first),
            Tone::Warning => paint.warning(first),
            Tone::Bad => paint.bad(first),
            Tone::Dim => paint.dim(first),
        };
        format!("{}{first}{after}", &self.text[..indent])
    }

    /// The line for a screen of `columns`: one that is too long loses its end and its colours.
    pub(super) fn cut(&self, columns: usize, paint: Paint) -> String {
        if self.text.chars().count() <= columns {
            self.painted(paint)
        } else {
            self.text.chars().take(columns).collect()
        }
    }
}

/// A name in front and facts behind it. Where the name does not fit in front, the facts are below it.
pub(super) struct Entry {
    /// Where the name begins.
    pub(super) indent: usize,
    /// Where the facts begin.
    pub(super) hang: usize,
    pub(super) name: String,
    pub(super) tone: Tone,
    pub(super) facts: String,
}

impl Entry {
    pub(super) fn lines(&self, columns: usize) -> Vec<Line> {
        let (name, facts) = (printable(&self.name), printable(&self.facts));
        let length = name.chars().count();
        let named = format!("{}{name}", " ".repeat(self.indent));
        let mut lines = Vec::new();
        let mut start = String::new();
        if self.indent + length < self.hang {
            start = named + &" ".repeat(self.hang - self.indent - length);
        } else {
            lines.push(Line::toned(named, length, self.tone));
        }
        let wrapped = wrap(&facts, columns.saturating_sub(self.hang));
        for (at, part) in wrapped.iter().enumerate() {
            if at == 0 && !start.is_empty() {
                lines.push(Line::toned(format!("{start}{part}"), length, self.tone));
            } else {
                lines.push(Line::plain(format!("{}{part}", " ".repeat(self.hang))));
            }
        }
        if wrapped.is_empty() && !start.is_empty() {
            lines.push(Line::toned(start.trim_end().to_owned(), length, self.tone));
        }
        lines
    }
}

/// A paragraph with a tone on its first word; the following lines are indented by two.
pub(super) fn paragraph(text: &str, tone: Tone, columns: usize) -> Vec<Line> {
    let text = printable(text);
    let first = text.split(' ').next().map_or(0, |word| word.chars().count());
    let wrapped = wrap(&text, columns.saturating_sub(2));
    let lines = wrapped.into_iter().enumerate().map(|(at, part)| {
        if at == 0 {
            Line::toned(part, first, tone)
        } else {
            Line::plain(format!("  {part}"))
        }
    });
    lines.collect()
}

/// Fills lines of `width` with words. A word that is longer, such as an id, has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn words_are_wrapped_and_never_broken() {
        assert_eq!(wrap("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrap("an 0123456789 id", 5), ["an", "0123456789", "id"]);
    }

    #[test]
    fn facts_hang_behind_a_short_name_and_below_a_long_one() {
        let entry = |name: &str| Entry {
            indent: 2,
            hang: 8,
            name: name.to_owned(),
            tone: Tone::Bad,
            facts: "one two three".to_owned(),
        };
        assert_eq!(texts(&entry("abc").lines(16)), ["  abc   one two", "        three"]);
        assert_eq!(
            texts(&entry("abcdefgh").lines(16)),
            ["  abcdefgh", "        one two", "        three"]
        );
    }

    #[test]
    fn a_line_that_is_too_long_for_the_screen_is_cut() {
        let line = Line::toned("  name facts".to_owned(), 4, Tone::Good);
        assert_eq!(line.cut(12, Paint::plain()), "  name facts");
        assert_eq!(line.cut(8, Paint::plain()), "  name f");
    }

    #[test]
    fn a_name_cannot_steer_a_terminal() {
        let entry = Entry {
            indent: 0,
            hang: 4,
            name: "a\x1b[2J".to_owned(),
            tone: Tone::Plain,
            facts: "b\nc".to_owned(),
        };
        assert!(!texts(&entry.lines(80)).concat().contains(char::is_control));
    }
}
