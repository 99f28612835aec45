//! What is seen while it runs: a view that is redrawn in place on a terminal, a line a second elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use sendoff::store::Backlog;

use super::proof::grouped;
use super::record::{Happened, Notes, Recent};
use crate::output::Paint;

pub(super) struct Screen {
    paint: Paint,
    live: bool,
    /// How many lines the view has on the screen now.
    drawn: usize,
    /// The last second that a line was written for.
    told: u64,
}

/// The state at one moment.
pub(super) struct Moment<'a> {
    pub(super) elapsed: Duration,
    pub(super) notes: &'a Notes,
    pub(super) backlog: Backlog,
    /// Deliveries a second, lately.
    pub(super) rate: f64,
    /// What is going on, in a word or two.
    pub(super) phase: &'static str,
}

impl Screen {
    /// A view if standard error is a terminal and nothing else writes to it.
    pub(super) fn new(paint: Paint, quiet: bool) -> Self {
        Self {
            paint,
            live: io::stderr().is_terminal() && quiet,
            drawn: 0,
            told: 0,
        }
    }

    /// Shows a moment.
    pub(super) fn show(&mut self, moment: &Moment<'_>) {
        let second = moment.elapsed.as_secs();
        if self.live {
            let (columns, rows) = size();
            self.draw(&view(moment, self.paint), columns, rows);
        } else if second > self.told {
            self.told = second;
            write(&(line(moment) + "\n"));
        }
    }

    /// Removes the view, to make room for the proof.
    pub(super) fn close(mut self) {
        self.draw(&[], 0, 0);
    }

    /// Puts the lines in place of those before: in one write, so that it does not flicker.
    fn draw(&mut self, lines: &[Line], columns: usize, rows: usize) {
        let mut frame = String::new();
        if self.drawn > 0 {
            frame += &format!("\x1b[{}A\r", self.drawn);
        }
        // The last row stays free for the cursor: a view that fills the screen would scroll it.
        let fitting = lines.len().min(rows.saturating_sub(1));
        for line in &lines[..fitting] {
            frame += &line.cut(columns);
            frame += "\x1b[K\n";
        }
        frame += "\x1b[J";
        if self.drawn > 0 || fitting > 0 {
            write(&frame);
        }
        self.drawn = fitting;
    }
}

/// How a part of a line is painted.
type Tone = fn(Paint, &str) -> String;

/// A line with and without its colours.
struct Line {
    plain: String,
    painted: String,
}

impl Line {
    fn new(parts: &[(&str, Tone)], paint: Paint) -> Self {
        Self {
            plain: parts.iter().map(|(text, _)| *text).collect(),
            painted: parts.iter().map(|(text, tone)| tone(paint, text)).collect(),
        }
    }

    /// At most so many columns of it: a line that wraps would spoil the count of lines.
    fn cut(&self, columns: usize) -> String {
        if self.plain.chars().count() < columns {
            self.painted.clone()
        } else {
            self.plain.chars().take(columns.saturating_sub(1)).collect()
        }
    }
}

fn plain(_: Paint, text: &str) -> String {
    text.to_owned()
}

fn view(moment: &Moment<'_>, paint: Paint) -> Vec<Line> {
    let Moment { notes, backlog, .. } = moment;
    let blank = || Line::new(&[], paint);
    let pair = |name: &str, count: String, other: &str, other_count: String| {
        let (count, other_count) = (format!("{count:>9}"), format!("{other_count:>9}"));
        let (name, other) = (format!("   {name:<18}"), format!("   {other:<18}"));
        Line::new(
            &[
                (&name, plain),
                (&count, Paint::bold),
                (&other, plain),
                (&other_count, Paint::bold),
            ],
            paint,
        )
    };
    let (committed, rolled_back) = (notes.committed.len() as u64, notes.rolled_back.len() as u64);
    let stored = backlog.ready + backlog.due + backlog.waiting;
    let subtitle = format!("  a small shop, {} s, {}", moment.elapsed.as_secs(), moment.phase);
    let mut lines = vec![
        Line::new(&[(" sendoff demo", Paint::bold), (&subtitle, Paint::dim)], paint),
        blank(),
        pair("committed", grouped(committed), "rolled back", grouped(rolled_back)),
        pair(
            "delivered",
            grouped(notes.arrived.len() as u64),
            "attempts failed",
            grouped(notes.failed),
        ),
        pair("in the outbox", grouped(stored), "dead letters", grouped(notes.dead)),
        pair(
            "deliveries a s",
            format!("{:.0}", moment.rate),
            "relays killed",
            grouped(notes.relays_killed),
        ),
        blank(),
        Line::new(&[(" lately", Paint::dim)], paint),
    ];
    lines.extend(notes.recent.iter().map(|recent| recently(recent, paint)));
    lines
}

fn recently(recent: &Recent, paint: Paint) -> Line {
    let (mark, tone): (&str, Tone) = match recent.happened {
        Happened::Committed => ("   + ", Paint::bold),
        Happened::RolledBack => ("   - ", Paint::dim),
        Happened::Delivered => ("   ✓ ", Paint::good),
        Happened::Failed => ("   ↻ ", Paint::warning),
        Happened::Dead | Happened::Killed => ("   ✗ ", Paint::bad),
    };
    Line::new(&[(mark, tone), (&recent.words, plain)], paint)
}

fn line(moment: &Moment<'_>) -> String {
    let Moment { notes, backlog, .. } = moment;
    format!(
        "{:>4} s  committed {}  rolled back {}  delivered {} ({:.0}/s)  in the outbox {}  attempts failed {}  dead {}  \
         relays killed {}  {}",
        moment.elapsed.as_secs(),
        notes.committed.len(),
        notes.rolled_back.len(),
        notes.arrived.len(),
        moment.rate,
        backlog.ready + backlog.due + backlog.waiting,
        notes.failed,
        notes.dead,
        notes.relays_killed,
        moment.phase,
    )
}

/// Columns and rows of the terminal.
fn size() -> (usize, usize) {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stderr())
        && size.ws_col > 0
        && size.ws_row > 0
    {
        return (size.ws_col.into(), size.ws_row.into());
    }
    (80, 24)
}

fn write(text: &str) {
    // Nobody has to look at it.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_before_it_wraps() {
        let line = Line::new(&[("ab", plain), ("cdé", Paint::bold)], Paint::plain());
        assert_eq!(line.cut(6), "abcdé");
        assert_eq!(line.cut(5), "abcd");
        assert_eq!(line.cut(0), "");
    }
}
