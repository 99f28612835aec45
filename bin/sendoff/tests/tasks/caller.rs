//! Names that a call may use.

use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use sendoff_celery::Task;
use serde::Serialize;

pub(crate) struct Caller {
    /// The start of the text of every task of the call, which identifies its lines.
    pub(crate) tag: String,
    pub(crate) queue: String,
    pub(crate) now: Timestamp,
}

impl Caller {
    /// When delayed calls are due.
    pub(crate) const DELAY: Duration = Duration::from_secs(2);

    pub(crate) fn eta(&self) -> Timestamp {
        self.now + Self::DELAY
    }

    /// Long after the test.
    pub(crate) fn later(&self) -> Timestamp {
        self.now + SignedDuration::from_hours(1)
    }

    /// SQL or expected text, with the names in capitals replaced.
    pub(crate) fn fill(&self, text: &str) -> String {
        let eta = iso8601(self.eta());
        [
            ("TAG", self.tag.as_str()),
            ("QUEUE", &self.queue),
            ("ETA", &eta),
            ("NAIVE", eta.trim_end_matches("+00:00")),
            ("LATER", &iso8601(self.later())),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    pub(crate) fn task(&self, name: &str, args: impl Serialize) -> Task {
        Task::new(name).args(args).unwrap()
    }

    /// The task whose result shows the order of execution.
    pub(crate) fn join(&self, part: &str) -> Task {
        self.task("shop.join", (&self.tag, part))
    }

    /// The same as a later step, which gets the result so far.
    pub(crate) fn step(&self, part: &str) -> Task {
        self.task("shop.join", [part])
    }
}

/// As Python writes it.
pub(crate) fn iso8601(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string()
}

pub(super) fn system(at: Timestamp) -> SystemTime {
    SystemTime::from(at)
}
