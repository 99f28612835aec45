//! Settlements: what happens to a row after an attempt.

use std::sync::Arc;
use std::time::Duration;

use super::{Lane, RowRef};

/// Why a message waits after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryState {
    /// It failed and is tried again; followers of its key wait.
    Retry,
    /// Its sink is down; followers of its key wait.
    Deferred,
    /// It failed and is tried again; followers of its key do not wait.
    Parked,
}

/// Why a message is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadReason {
    /// Its attempts are used up.
    Exhausted,
    /// The sink reported a permanent failure.
    Permanent,
    /// Its `expires_at` has passed.
    Expired,
    /// No route matches its topic.
    Unroutable,
    /// Its row is not a valid message.
    Unreadable,
    /// Relays crashed while they worked on it.
    Crashed,
}

impl DeadReason {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Exhausted,
        Self::Permanent,
        Self::Expired,
        Self::Unroutable,
        Self::Unreadable,
        Self::Crashed,
    ];

    /// The name in the database, the CLI and the admin page.
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
    /// The name in the database, the CLI and the admin page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Deferred => "deferred",
            Self::Parked => "parked",
        }
    }
}

/// What happens to one delivery of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Confirmed: the delivery is done.
    Delivered,
    /// Tried again after `delay`, by the database's clock.
    Retry {
        /// Why it waits.
        state: RetryState,
        /// How long.
        delay: Duration,
        /// Whether this counts as an attempt.
        charged: bool,
        /// The error text.
        error: String,
    },
    /// Deferred until an operator ends the pause of topics with this name. The store checks in the same transaction that the
    /// pause still exists; if not, the message is due now.
    Paused {
        /// The name of the pause.
        by: String,
    },
    /// Blocked until the earlier messages of its key are gone. The store checks its own tables for them (an operator
    /// may have removed them a moment ago); if there are none, it is due now.
    Blocked,
    /// It becomes a dead letter.
    Dead {
        /// Why.
        reason: DeadReason,
        /// The error text.
        error: String,
        /// Whether this counts as an attempt.
        charged: bool,
        /// Whether followers of its key wait until an operator acts.
        blocks: bool,
    },
}

/// One delivery with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliverySettlement {
    /// The sink; empty when the message could not be routed.
    pub sink: Arc<str>,
    /// What happens to it.
    pub verdict: Verdict,
}

/// What happens to one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The row.
    pub row_ref: RowRef,
    /// The epoch of the lane when the row was read.
    pub epoch: i64,
    /// All deliveries, the delivered ones included, so that a store that keeps delivered messages knows which sinks have
    /// the message. May be empty when all of them are delivered and the store does not
    /// [keep](super::RelayStore::keeps_delivered) them. A row of the waiting table with a sink has at most that one here.
    pub deliveries: Vec<DeliverySettlement>,
    /// The ordering key, so that followers can be released.
    pub key: Option<Arc<str>>,
    /// Attempts of the row when it was read. Another attempt is charged only while the row still has this many, so that a
    /// settlement that is written twice, because the first answer was lost, charges once.
    pub attempts: u32,
}

/// A key whose messages wait for a sink.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockedKey {
    /// Its lane.
    pub lane: Lane,
    /// The key.
    pub key: Arc<str>,
    /// The sink; empty for scheduled messages that are not routed yet.
    pub sink: Arc<str>,
}

/// The result of settling.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettleReport {
    /// Lanes that the relay no longer holds with that epoch: their rows were not changed.
    pub lost: Vec<Lane>,
    /// Keys that were settled in the waiting table and have no waiting or blocking row any more.
    pub freed: Vec<BlockedKey>,
    /// Whether waiting rows became due, such as released followers: the relay should read again immediately.
    pub woke: bool,
}
