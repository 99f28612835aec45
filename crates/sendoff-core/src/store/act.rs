//! The actions of operators, in batches, and their names in the audit.

use super::{Filter, RowRef};

/// An action of an operator; the audit has the name of its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Waiting messages become due.
    Retry,
    /// Waiting messages become due; attempts are reset to 0.
    Reset,
    /// Dead letters are retried.
    RetryDead,
    /// Dead letters are deleted.
    DiscardDead,
    /// The followers of a key's dead letters continue.
    ReleaseKey,
    /// A topic or a sink is paused.
    Pause,
    /// A pause ends.
    Resume,
    /// Lanes and jobs of vanished relays and workers are freed.
    Reap,
    /// Old rows are deleted.
    CleanUp,
    /// Failed jobs are retried.
    RetryJobs,
    /// Failed jobs are deleted.
    DiscardJobs,
}

impl Action {
    /// The name in the audit.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Reset => "retry --reset",
            Self::RetryDead => "dead retry",
            Self::DiscardDead => "dead discard",
            Self::ReleaseKey => "keys release",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Reap => "reap",
            Self::CleanUp => "cleanup",
            Self::RetryJobs => "jobs retry",
            Self::DiscardJobs => "jobs discard",
        }
    }
}

/// A command of an operator. It may take several batches, each in its own transaction. They share one audit row, to
/// which every batch adds its count, so that the row is right even if the command is interrupted. All batches have the
/// same action and filter; a store may refuse to add others to the row.
#[derive(Debug, Clone)]
pub struct Command {
    who: String,
    row: Option<i64>,
}

impl Command {
    /// A command that has not started.
    pub fn by(who: impl Into<String>) -> Self {
        Self {
            who: who.into(),
            row: None,
        }
    }

    /// Who runs it.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Its audit row, once a batch has written it.
    pub fn row(&self) -> Option<i64> {
        self.row
    }

    /// Sets its audit row. A store calls this when the first batch is committed.
    pub fn is_noted(&mut self, row: i64) {
        self.row = Some(row);
    }
}

/// Options for making waiting messages due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryOptions {
    /// Reset attempts to 0.
    pub reset: bool,
    /// Also scheduled messages, which were not tried yet.
    pub scheduled: bool,
}

impl RetryOptions {
    /// The action of these options.
    pub fn action(self) -> Action {
        if self.reset { Action::Reset } else { Action::Retry }
    }

    /// The request, as JSON for the audit.
    pub fn asked(self, filter: &Filter) -> serde_json::Value {
        let mut asked = serde_json::json!(filter);
        if self.scheduled {
            asked["scheduled"] = true.into();
        }
        asked
    }
}

/// The result of one batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetriedBatch {
    /// How many messages became due.
    pub due: u64,
    /// The row after which the next batch starts; `None` when this was the last.
    pub next: Option<RowRef>,
}

/// The result of reaping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Freed lanes of relays whose lease has run out.
    pub lanes: u64,
    /// Jobs whose lease ran out long ago.
    pub jobs: u64,
}

/// How many rows there are to clean up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanCount {
    /// Rows past their retention.
    pub old: u64,
    /// All rows of the selected kinds, including the old ones.
    pub all: u64,
}

/// The result of one batch of a clean-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Deleted rows.
    pub deleted: u64,
    /// Whether there may be more old rows.
    pub more: bool,
}
