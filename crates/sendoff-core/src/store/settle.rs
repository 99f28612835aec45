//! Settlements: what happens to a row after an attempt.

use std::sync::Arc;
use std::time::Duration;

use super::{Lane, RowRef};

/// Why a message waits after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryState {
    /// The delivery failed and is tried again; later messages of its key wait.
    Retry,
    /// The sink is down; later messages of the key wait.
    Deferred,
    /// The delivery failed and is tried again; later messages of its key do not wait.
    Parked,
}

/// Why a delivery is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadReason {
    /// The delivery has used all its attempts.
    Exhausted,
    /// The sink reported a permanent failure.
    Permanent,
    /// The message's `expires_at` has passed.
    Expired,
    /// No route matches the message's topic.
    Unroutable,
    /// The row is not a valid message.
    Unreadable,
    /// Relays crashed while they worked on the message.
    Crashed,
}

impl DeadReason {
    /// All reasons.
    pub const ALL: [Self; 6] = [
        Self::Exhausted,
        Self::Permanent,
        Self::Expired,
        Self::Unroutable,
        Self::Unreadable,
        Self::Crashed,
    ];

    /// The name of the state in the database, the CLI and the admin page.
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
    /// The name of the reason in the database, the CLI and the admin page.
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
    /// The sink confirmed the message: the delivery is done.
    Delivered,
    /// The delivery is tried again after `delay`, by the database's clock.
    Retry {
        /// Why the delivery waits.
        state: RetryState,
        /// How long the delivery waits.
        delay: Duration,
        /// Whether this counts as an attempt.
        charged: bool,
        /// The text of the error.
        error: String,
    },
    /// Deferred until an operator ends the pause of topics with this name. The store checks in the same transaction that the
    /// pause still exists; if not, the message is due now.
    Paused {
        /// The name in the pause, which may be a pattern.
        by: String,
    },
    /// The delivery is blocked until the earlier messages of its key are gone. The store checks its own tables for them
    /// (an operator may have removed them a moment ago); if there are none, the delivery is due now.
    Blocked,
    /// The delivery becomes a dead letter.
    Dead {
        /// Why the delivery is dead.
        reason: DeadReason,
        /// The text of the error.
        error: String,
        /// Whether this counts as an attempt.
        charged: bool,
        /// Whether later messages of the key wait until an operator acts.
        blocks: bool,
    },
}

/// One delivery with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliverySettlement {
    /// The sink; empty when the message could not be routed.
    pub sink: Arc<str>,
    /// What happens to the delivery.
    pub verdict: Verdict,
}

/// The decision about one row after an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The row ref of the row.
    pub row_ref: RowRef,
    /// The epoch of the lane when the row was read.
    pub epoch: i64,
    /// All deliveries, the delivered ones included, so that a store that keeps delivered messages knows which sinks have
    /// the message. May be empty when all of them are delivered and the store does not
    /// [keep](super::RelayStore::keeps_delivered) them. A row of the waiting table with a sink has at most that one here.
    pub deliveries: Vec<DeliverySettlement>,
    /// The message's ordering key, so that messages behind it can be released.
    pub key: Option<Arc<str>>,
    /// The row's attempts when it was read. A further attempt is charged only while the row still has this number, so
    /// that a settlement that is written twice, because the first answer was lost, charges once.
    pub attempts: u32,
}

/// A key whose messages wait for a sink.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockedKey {
    /// The lane of the key.
    pub lane: Lane,
    /// The blocked key.
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
