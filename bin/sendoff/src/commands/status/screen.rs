//! The screen of `--watch`: redrawn in place, and given back as it was.

use std::io::{self, Write};

use super::layout::Line;
use crate::output::Paint;

/// The terminal's alternate screen, which the terminal gives up for the old one when this is dropped.
pub(super) struct Screen(());

impl Screen {
    /// Switches to it, without a cursor.
    pub(super) fn open() -> Self {
        // If this fails, drawing fails, too, and says why.
        let _ = write("\x1b[?1049h\x1b[?25l");
        Self(())
    }

    /// Shows these lines from the top, in one write to avoid flicker. What does not fit is counted in the last row.
    pub(super) fn draw(&mut self, lines: &[Line], columns: usize, rows: usize, paint: Paint) -> io::Result<()> {
        write(&frame(lines, columns, rows, paint))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write("\x1b[?25h\x1b[?1049l");
    }
}

fn frame(lines: &[Line], columns: usize, rows: usize, paint: Paint) -> String {
    let mut shown: Vec<String> = lines.iter().map(|line| line.cut(columns, paint)).collect();
    if shown.len() > rows {
        let kept = rows.saturating_sub(1);
        let more = Line::plain(format!("… {} more lines", shown.len() - kept));
        shown.truncate(kept);
        shown.push(more.cut(columns, paint));
    }
    // No line break behind the last line: on a full screen it would scroll.
    let body: Vec<String> = shown.into_iter().map(|line| line + "\x1b[K").collect();
    format!("\x1b[H{}\x1b[J", body.join("\r\n"))
}

/// Columns and rows of the terminal; 80 by 24 if there is none.
pub(super) fn size(is_terminal: bool) -> (usize, usize) {
    #[cfg(unix)]
    if is_terminal
        && let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
        && size.ws_col > 0
        && size.ws_row > 0
    {
        return (size.ws_col.into(), size.ws_row.into());
    }
    let _ = is_terminal;
    (80, 24)
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Changes of the terminal's size.
pub(super) struct Resizes {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Resizes {
    /// Without a handler, the next look has the new size.
    pub(super) fn new() -> Self {
        Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::window_change()).ok(),
        }
    }

    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_never_scrolls_the_screen() {
        let lines: Vec<Line> = (0..9).map(|n| Line::plain(format!("line {n}"))).collect();
        for rows in 1..12 {
            let frame = frame(&lines, 6, rows, Paint::plain());
            assert!(frame.matches("\r\n").count() < rows, "{rows}: {frame:?}");
            assert_eq!(
                frame.contains("more l") || frame.contains("… "),
                rows < 9,
                "{rows}: {frame:?}"
            );
        }
    }
}
