//! Printed output: tables on a terminal, plain lines in a pipe, JSON with `--json`.
//!
//! Data goes to standard output and everything else to standard error. Standard output is locked for one write at a
//! time only, because the stdout sink of a relay in this process also writes there.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

pub(crate) use crate::printable::{printable, printable_lines};
use crate::table::{self, Column};

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// Use colours on a terminal, unless NO_COLOR is set.
    Auto,
    /// Always use colours.
    Always,
    /// Never use colours.
    Never,
}

impl ColorChoice {
    /// Whether to use colours on a stream; `terminal` says whether it is a terminal.
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

/// The meaning of a text, shown as its colour.
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

impl Field {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn tone(&self) -> Tone {
        self.tone
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

    /// Whether standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Colours for standard output.
    pub(crate) fn paint(&self) -> Paint {
        self.paint
    }

    /// Prints text unchanged.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Prints a line.
    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        self.print(&format!("{text}\n"))
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(value)?;
        line.push('\n');
        self.print(&line)
    }

    /// Prints a table: as wide as the screen on a terminal, separated by tabs elsewhere, with every column and whole texts.
    pub(crate) fn table<C: Into<Column> + Copy>(&self, columns: &[C], rows: Vec<Vec<Field>>) -> io::Result<()> {
        let columns: Vec<Column> = columns.iter().map(|column| (*column).into()).collect();
        if self.terminal {
            return self.line(&table::drawn(&columns, &rows, width(), self.paint));
        }
        let headings: Vec<&str> = columns.iter().map(|column| column.heading).collect();
        let mut text = headings.join("\t") + "\n";
        for row in rows {
            let fields: Vec<String> = row.into_iter().map(|field| field.text).collect();
            text += &(fields.join("\t") + "\n");
        }
        self.print(&text)
    }
}

/// How many columns the screen has.
fn width() -> usize {
    #[cfg(unix)]
    {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        size.map_or(table::USUAL, |size| match size.ws_col {
            0 => table::USUAL,
            columns => usize::from(columns),
        })
    }
    #[cfg(not(unix))]
    {
        table::USUAL
    }
}

/// Paints text, or leaves it plain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Colours for standard error.
    pub(crate) fn of_stderr(color: ColorChoice) -> Self {
        Self {
            on: color.applies_to(io::stderr().is_terminal()),
        }
    }

    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false }
    }

    #[cfg(test)]
    pub(crate) fn coloured() -> Self {
        Self { on: true }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_used_when_forced_and_never_when_switched_off() {
        assert!(ColorChoice::Always.applies_to(false));
        assert!(!ColorChoice::Never.applies_to(true));
        assert!(!ColorChoice::Auto.applies_to(false));
        assert_eq!(Paint { on: true }.good("x"), "\x1b[32mx\x1b[0m");
    }
}
