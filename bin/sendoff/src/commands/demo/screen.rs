//! The screen of a running demo: redrawn in place on a terminal, one line per second elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use sendoff::store::Backlog;

use super::fit;
use super::proof::grouped;
use super::record::{Happened, Notes, Recent};
use crate::output::Paint;

pub(super) struct Screen {
    paint: Paint,
    live: bool,
    /// How many lines are on the screen now.
    drawn: usize,
    /// The last second that a line was written for.
    told: u64,
}

/// The state at one moment.
pub(super) struct Moment<'a> {
    pub(super) elapsed: Duration,
    pub(super) notes: &'a Notes,
    pub(super) backlog: Backlog,
    /// Recent deliveries per second.
    pub(super) rate: f64,
    /// The current phase, for people.
    pub(super) phase: &'static str,
}

impl Screen {
    /// Redraws in place if standard error is a terminal and no log lines go there.
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
            self.draw(&view(moment, self.paint, columns), columns, rows);
        } else if second > self.told {
            self.told = second;
            write(&(line(moment) + "\n"));
        }
    }

    /// Removes the view before the proof is printed.
    pub(super) fn close(mut self) {
        self.draw(&[], 0, 0);
    }

    /// Replaces the lines on the screen, in one write to avoid flicker.
    fn draw(&mut self, lines: &[Line], columns: usize, rows: usize) {
        let mut frame = String::new();
        if self.drawn > 0 {
            frame += &format!("\x1b[{}A\r", self.drawn);
        }
        // The last row is left free for the cursor: a view that fills the screen would scroll it.
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

/// The colour of a part of a line.
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

    /// The line, cut to less than `columns`: a line that wraps would break the count of lines.
    fn cut(&self, columns: usize) -> String {
        if self.plain.chars().count() < columns {
            self.painted.clone()
        } else {
            fit::cut(&self.plain, columns.saturating_sub(1))
        }
    }
}

fn plain(_: Paint, text: &str) -> String {
    text.to_owned()
}

/// A count with its name. `NAME` columns are for the name, `COUNT` for the number.
type Count = (&'static str, String);
const NAME: usize = 18;
const COUNT: usize = 9;

/// The counts in two columns; one below the other if the terminal is too narrow for that, with shorter names if it is
/// even narrower.
fn counts(pairs: [[Count; 2]; 4], paint: Paint, columns: usize) -> Vec<Line> {
    let part = |(name, count): &Count, room: usize| {
        let name = fit::cut(name, room);
        (format!("   {name:<room$}"), format!("{count:>COUNT$}"))
    };
    let line = |parts: &[(String, String)]| {
        let tones = parts
            .iter()
            .flat_map(|(name, count)| [(name.as_str(), plain as Tone), (count.as_str(), Paint::bold)]);
        Line::new(&tones.collect::<Vec<_>>(), paint)
    };
    let wide = 3 + NAME + COUNT;
    if columns > 2 * wide {
        return pairs
            .iter()
            .map(|pair| line(&pair.each_ref().map(|count| part(count, NAME))))
            .collect();
    }
    let room = NAME.min(columns.saturating_sub(wide - NAME + 1));
    // The left column first: it is the path of a message.
    let [left, right] = [0, 1].map(|side| pairs.iter().map(move |pair| &pair[side]));
    left.chain(right).map(|count| line(&[part(count, room)])).collect()
}

fn view(moment: &Moment<'_>, paint: Paint, columns: usize) -> Vec<Line> {
    let Moment { notes, backlog, .. } = moment;
    let blank = || Line::new(&[], paint);
    let (committed, rolled_back) = (notes.committed.len() as u64, notes.rolled_back.len() as u64);
    let stored = backlog.ready + backlog.due + backlog.waiting;
    let title = format!("  a small shop, {} s, {}", moment.elapsed.as_secs(), moment.phase);
    let mut lines = Vec::new();
    for text in fit::wrap(&format!("sendoff demo{title}"), columns.saturating_sub(2)) {
        lines.push(match text.strip_prefix("sendoff demo") {
            Some(rest) => Line::new(&[(" sendoff demo", Paint::bold), (rest, Paint::dim)], paint),
            None => Line::new(&[(" ", plain), (text, Paint::dim)], paint),
        });
    }
    lines.push(blank());
    lines.extend(counts(
        [
            [("committed", grouped(committed)), ("rolled back", grouped(rolled_back))],
            [
                ("delivered", grouped(notes.arrived.len() as u64)),
                ("attempts failed", grouped(notes.failed)),
            ],
            [
                ("in the outbox", grouped(stored)),
                ("dead letters", grouped(notes.dead)),
            ],
            [
                ("deliveries/s", grouped(moment.rate.round() as u64)),
                ("relays killed", grouped(notes.relays_killed)),
            ],
        ],
        paint,
        columns,
    ));
    lines.push(blank());
    lines.push(Line::new(&[(" recent events", Paint::dim)], paint));
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
    // The view may get lost.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: usize) -> Vec<String> {
        let record = super::super::record::Record::default();
        record.failed("order 1234: mail server busy; attempt 12 in 3456 ms".to_owned());
        let mut notes = record.notes();
        (notes.failed, notes.dead, notes.relays_killed) = (1_234_567, 23_456, 345);
        let moment = Moment {
            elapsed: Duration::from_secs(7890),
            notes: &notes,
            backlog: Backlog {
                waiting: 4567,
                ..Backlog::default()
            },
            rate: 5678.4,
            phase: "press Ctrl-C for the proof",
        };
        let view = view(&moment, Paint::plain(), columns);
        view.iter().map(|line| line.cut(columns)).collect()
    }

    #[test]
    fn every_count_is_shown_whole_on_a_narrow_terminal() {
        for columns in [25, 30, 31, 40, 59, 60, 61, 80, 200] {
            let lines = shown(columns);
            let text = lines.join("\n");
            for line in &lines {
                assert!(line.chars().count() < columns, "{columns}: {line:?}");
            }
            for count in ["7890", "4 567", "5 678", "1 234 567", "23 456", "345"] {
                assert!(text.contains(count), "{columns}: {count} in\n{text}");
            }
            // What is left out is left out as whole words.
            let numbers = text
                .split(|c: char| !c.is_ascii_digit())
                .filter(|number| !number.is_empty());
            for number in numbers {
                let whole = [
                    "7890", "4", "567", "5", "678", "1", "234", "23", "456", "345", "0", "1234", "12", "3456",
                ];
                assert!(whole.contains(&number), "{columns}: {number} in\n{text}");
            }
        }
        assert!(shown(40).join("\n").contains("Ctrl-C"), "{:?}", shown(40));
        assert_eq!(shown(200).len(), 9);
    }

    #[test]
    fn a_line_is_cut_before_it_wraps() {
        let line = Line::new(&[("ab ", plain), ("cdé", Paint::bold)], Paint::plain());
        assert_eq!(line.cut(7), "ab cdé");
        assert_eq!(line.cut(6), "ab …");
        assert_eq!(line.cut(0), "");
    }
}
