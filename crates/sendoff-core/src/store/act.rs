//! The actions of operators, in batches, and their names in the audit.

use super::{Filter, RowRef};

/// An action of an operator. The audit stores the name of its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Makes waiting messages due now.
    Retry,
    /// Makes waiting messages due now, and resets their attempts to 0.
    Reset,
    /// Retries dead letters.
    RetryDead,
    /// Deletes dead letters.
    DiscardDead,
    /// Releases a key: messages behind its dead letters become due.
    ReleaseKey,
    /// Pauses a topic or a sink.
    Pause,
    /// Ends a pause.
    Resume,
    /// Frees the lanes and jobs of relays and workers that are gone.
    Reap,
    /// Deletes old rows.
    CleanUp,
    /// Retries failed jobs.
    RetryJobs,
    /// Deletes failed jobs.
    DiscardJobs,
}

impl Action {
    /// The name of the action in the audit.
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

/// A command of an operator. It may take several batches, each in its own transaction. All batches share one audit row
/// and add their counts to it, so that the row is right even if the command is interrupted. All batches have the same
/// action and filter; a store may refuse to add others to the row.
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

    /// The operator who runs the command.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// The number of the command's audit row, once a batch has written it.
    pub fn row(&self) -> Option<i64> {
        self.row
    }

    /// Sets the number of the command's audit row. A store calls this when the first batch is committed.
    pub fn is_noted(&mut self, row: i64) {
        self.row = Some(row);
    }
}

/// Options for making waiting messages due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryOptions {
    /// Whether to reset attempts to 0.
    pub reset: bool,
    /// Whether to include scheduled messages, which were not tried yet.
    pub scheduled: bool,
}

impl RetryOptions {
    /// The action that these options ask for.
    pub fn action(self) -> Action {
        if self.reset { Action::Reset } else { Action::Retry }
    }

    /// The request as JSON, for the audit.
    pub fn asked(self, filter: &Filter) -> serde_json::Value {
        let mut asked = serde_json::json!(filter);
        if self.scheduled {
            asked["scheduled"] = true.into();
        }
        asked
    }
}

/// The result of one batch of a retry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetriedBatch {
    /// How many messages became due.
    pub due: u64,
    /// The row after which the next batch starts; `None` when this was the last.
    pub next: Option<RowRef>,
}

/// The number of freed lanes and reaped jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Freed lanes of relays whose lease has run out.
    pub lanes: u64,
    /// Jobs whose lease ran out long ago.
    pub jobs: u64,
}

/// How many rows a clean-up would delete, and how many there are.
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
    /// Number of deleted rows.
    pub deleted: u64,
    /// Whether there may be more rows to delete.
    pub more: bool,
}
