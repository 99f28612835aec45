//! What became of a message, and what is to happen with its row.

use std::sync::Arc;
use std::time::Duration;

use super::{Lane, Place};

/// Why a message waits after it was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryState {
    /// It failed and is tried again; followers of its key wait.
    Retry,
    /// Its sink is down; followers of its key wait.
    Down,
    /// It failed and is tried again; followers of its key go on without it.
    Parked,
}

/// Why a message is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeadReason {
    /// Its attempts are used up.
    Exhausted,
    /// The sink said that it can never work.
    Permanent,
    /// Its `expires_at` has passed.
    Expired,
    /// No route leads anywhere for its topic.
    Unroutable,
    /// Its row is no message.
    Unreadable,
    /// Relays crashed while they worked on it.
    Crashed,
}

impl DeadReason {
    /// The word in the database, the CLI and the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::Permanent => "permanent",
            Self::Expired => "expired",
            Self::Unroutable => "unroutable",
            Self::Unreadable => "unreadable",
            Self::Crashed => "crashed",
        }
    }
}

impl RetryState {
    /// The word in the database, the CLI and the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Down => "down",
            Self::Parked => "parked",
        }
    }
}

/// What is to happen with one leg of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Confirmed: the leg is done.
    Delivered,
    /// To be tried again after `delay`, by the database's clock.
    Retry {
        /// Why it waits.
        state: RetryState,
        /// How long.
        delay: Duration,
        /// Whether this counts as an attempt.
        charged: bool,
        /// What went wrong, in words.
        error: String,
    },
    /// To wait, without a time, until the messages of its key before it are gone. The store decides by its own tables
    /// whether there are any (an operator may have removed them a moment ago); if not, it is due at once.
    Hold,
    /// To the dead letters.
    Dead {
        /// Why.
        reason: DeadReason,
        /// In words.
        error: String,
        /// Whether this counts as an attempt.
        charged: bool,
        /// Whether followers of its key wait until an operator acts.
        blocks: bool,
    },
}

/// One leg with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct LegSettlement {
    /// The sink; empty when the message could not be routed.
    pub leg: Arc<str>,
    /// What is to happen.
    pub verdict: Verdict,
}

/// What is to happen with one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The row.
    pub place: Place,
    /// The epoch of the lane when the row was read.
    pub epoch: i64,
    /// All legs, or none when every one is delivered. A leg that is delivered while others are not is listed, so that a
    /// store with a retention can tell which sink has the message. A row of the waiting table that names a leg has at most
    /// that one here.
    pub legs: Vec<LegSettlement>,
    /// The ordering key, so that followers can be let go.
    pub key: Option<Arc<str>>,
}

/// A key of which messages wait for a sink.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockedKey {
    /// Its lane.
    pub lane: Lane,
    /// The key.
    pub key: Arc<str>,
    /// The sink; empty for scheduled messages that are not routed yet.
    pub leg: Arc<str>,
}

/// What settling did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettleReport {
    /// Lanes that the relay does not hold with that epoch any more: nothing of theirs was touched.
    pub lost: Vec<Lane>,
    /// Of the keys that were settled in the waiting table: those of which nothing waits or blocks any more.
    pub freed: Vec<BlockedKey>,
    /// Whether waiting rows became due at once (followers let go): worth reading again right away.
    pub woke: bool,
}
