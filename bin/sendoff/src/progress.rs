//! Progress of long work, on standard error, on a terminal only.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::session::Session;

/// Counts what is done.
pub(crate) struct Counting(ProgressBar);

impl Counting {
    /// Whether somebody sees it: a program that reads JSON does not look, and log lines would tear it.
    pub(crate) fn is_shown(session: &Session) -> bool {
        io::stderr().is_terminal() && !session.output.json && !session.logs_what_happens()
    }

    /// A bar if the number is known, else a counter.
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

    /// So many are done.
    pub(crate) fn set(&mut self, done: u64) {
        self.0.set_position(done);
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        self.0.finish_and_clear();
    }
}
