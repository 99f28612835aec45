//! Progress of long work, on standard error and only on a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::session::Session;

/// A progress bar or counter.
pub(crate) struct Counting(ProgressBar);

impl Counting {
    /// Whether it is shown: only on a terminal, without `--json`, and without log lines that would interrupt it.
    pub(crate) fn is_shown(session: &Session) -> bool {
        io::stderr().is_terminal() && !session.output.json && !session.logs_what_happens()
    }

    /// A bar if the total is known, otherwise a counter.
    pub(crate) fn start(session: &Session, verb: &str, of: Option<u64>) -> Self {
        let bar = of.map_or_else(ProgressBar::no_length, ProgressBar::new);
        bar.set_draw_target(if Self::is_shown(session) {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        });
        let template = if of.is_some() {
            "{wide_bar} {pos}/{len} {msg} {eta}"
        } else {
            "{spinner} {pos} {msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(verb.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    /// Sets how many are done.
    pub(crate) fn set(&mut self, done: u64) {
        self.0.set_position(done);
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.0.finish_and_clear();
    }
}
