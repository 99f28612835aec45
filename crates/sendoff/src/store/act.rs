//! What operators do, in batches, and in the words of the audit.

use super::{Filter, Place};

/// What an operator does; the word in the audit is that of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Waiting messages become due.
    Retry,
    /// Waiting messages become due, as if they had never been tried.
    Reset,
    /// Dead letters come back.
    RetryDead,
    /// Dead letters are deleted.
    DiscardDead,
    /// A key goes on past its dead letters.
    ReleaseKey,
    /// A topic or a sink is paused.
    Pause,
    /// A pause ends.
    Resume,
    /// What relays and workers left behind is freed.
    Reap,
    /// What is old is deleted.
    CleanUp,
    /// Failed items come back.
    RetryItems,
    /// Failed items are deleted.
    DiscardItems,
}

impl Action {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Reset => "reset",
            Self::RetryDead => "dead retry",
            Self::DiscardDead => "dead discard",
            Self::ReleaseKey => "keys release",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Reap => "reap",
            Self::CleanUp => "cleanup",
            Self::RetryItems => "items retry",
            Self::DiscardItems => "items discard",
        }
    }
}

/// A command of somebody's that may take several batches, each a transaction of its own. They share one row of the audit,
/// which every batch adds to, so that it is right whenever the command is cut off.
#[derive(Debug, Clone)]
pub struct Command {
    who: String,
    row: Option<i64>,
}

impl Command {
    /// One that has not begun.
    pub fn by(who: impl Into<String>) -> Self {
        Self {
            who: who.into(),
            row: None,
        }
    }

    /// Who gave it.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Its row in the audit, once a batch has written it.
    pub fn row(&self) -> Option<i64> {
        self.row
    }

    /// A store says where the first batch has written it, when that is committed.
    pub fn is_noted(&mut self, row: i64) {
        self.row = Some(row);
    }
}

/// Which waiting messages become due, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hasten {
    /// As if they had never been tried.
    pub reset: bool,
    /// Also scheduled ones, which nobody has tried because their time has not come.
    pub scheduled: bool,
}

impl Hasten {
    /// The word for it.
    pub fn action(self) -> Action {
        if self.reset { Action::Reset } else { Action::Retry }
    }

    /// What was asked for, as JSON for the audit.
    pub fn asked(self, filter: &Filter) -> serde_json::Value {
        let mut asked = serde_json::json!(filter);
        if self.scheduled {
            asked["scheduled"] = true.into();
        }
        asked
    }
}

/// What one batch made due.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hastened {
    /// How many messages.
    pub due: u64,
    /// Behind which place the next batch begins; `None` when this was the last.
    pub next: Option<Place>,
}

/// What was freed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Lanes of relays whose lease has run out.
    pub lanes: u64,
    /// Items of workers that have not renewed them for long.
    pub items: u64,
}

/// How much there is to clean up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanCount {
    /// Rows that are old enough to go.
    pub old: u64,
    /// All rows of the kinds that the windows name, old ones included.
    pub all: u64,
}

/// What one batch of a clean-up did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Rows that are gone.
    pub deleted: u64,
    /// Whether there may be more that is old.
    pub more: bool,
}
