//! What people and programs read: tables on a terminal, plain lines in a pipe, JSON when asked.
//!
//! Data goes to standard output and everything else to standard error. Standard output is locked for one write at a
//! time only, because the stdout sink of a relay in this process writes there, too.

use std::io::{self, IsTerminal, Write};

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use serde::Serialize;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorChoice {
    /// Whether to use colours in what goes to a stream that is, or is no terminal.
    pub(crate) fn applies_to(self, terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                terminal && !set("NO_COLOR") && !dumb
            }
        }
    }
}

/// How a text is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Warning,
    Bad,
    Dim,
}

/// A field of a table.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    text: String,
    tone: Tone,
}

impl Field {
    pub(crate) fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Self {
            text: printable(text.as_ref()),
            tone,
        }
    }
}

impl<T: ToString> From<T> for Field {
    fn from(text: T) -> Self {
        Self::toned(text.to_string(), Tone::Plain)
    }
}

/// Standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// Whether to print JSON.
    pub(crate) json: bool,
    terminal: bool,
    paint: Paint,
}

impl Output {
    pub(crate) fn new(json: bool, color: ColorChoice) -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            json,
            terminal,
            paint: Paint {
                on: color.applies_to(terminal),
            },
        }
    }

    /// Whether a person looks at it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The colours that standard output takes.
    pub(crate) fn paint(&self) -> Paint {
        self.paint
    }

    /// Prints text as it is.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Prints a text and ends the line.
    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        self.print(&format!("{text}\n"))
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(value)?;
        line.push('\n');
        self.print(&line)
    }

    /// Prints a table: with lines and wrapped to the screen on a terminal, separated by tabs elsewhere.
    pub(crate) fn table(&self, headings: &[&str], rows: Vec<Vec<Field>>) -> io::Result<()> {
        if self.terminal {
            return self.line(&drawn(headings, rows, self.paint));
        }
        let mut text = headings.join("\t") + "\n";
        for row in rows {
            let fields: Vec<String> = row.into_iter().map(|field| field.text).collect();
            text += &(fields.join("\t") + "\n");
        }
        self.print(&text)
    }
}

fn drawn(headings: &[&str], rows: Vec<Vec<Field>>, paint: Paint) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(headings);
    if paint.on {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    for row in rows {
        table.add_row(row.into_iter().map(|field| {
            let cell = Cell::new(field.text);
            match field.tone {
                Tone::Plain => cell,
                Tone::Good => cell.fg(Color::Green),
                Tone::Warning => cell.fg(Color::Yellow),
                Tone::Bad => cell.fg(Color::Red),
                Tone::Dim => cell.fg(Color::DarkGrey),
            }
        }));
    }
    table.to_string()
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// The colours that standard error takes.
    pub(crate) fn of_stderr(color: ColorChoice) -> Self {
        Self {
            on: color.applies_to(io::stderr().is_terminal()),
        }
    }

    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false }
    }

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The text without control characters: what a producer wrote must not steer the reader's terminal, nor break a line.
pub(crate) fn printable(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            clean.extend(c.escape_default());
        } else {
            clean.push(c);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_cannot_steer_a_terminal() {
        assert_eq!(printable("a\x1b[31m\tb\n"), "a\\u{1b}[31m\\tb\\n");
        assert_eq!(printable("grün ✓"), "grün ✓");
    }

    #[test]
    fn colours_are_used_when_forced_and_never_when_switched_off() {
        assert!(ColorChoice::Always.applies_to(false));
        assert!(!ColorChoice::Never.applies_to(true));
        assert!(!ColorChoice::Auto.applies_to(false));
        assert_eq!(Paint { on: true }.good("x"), "\x1b[32mx\x1b[0m");
    }

    #[test]
    fn a_drawn_table_has_no_escapes_without_colours() {
        let row = || vec![Field::toned("dead", Tone::Bad), 7.into()];
        let plain = drawn(&["status", "n"], vec![row()], Paint { on: false });
        assert!(plain.contains("dead") && !plain.contains('\x1b'), "{plain}");
        assert!(drawn(&["status", "n"], vec![row()], Paint { on: true }).contains('\x1b'));
    }
}
