//! What producers did and what arrived, and whether the one explains the other.
//!
//! A message is known by its key and a number that is not used twice within the key. [`Recorder`] writes down what
//! happens while it happens; [`History::check`] then judges it without looking at a clock, a store or a sink:
//!
//! | finding | meaning |
//! |---|---|
//! | lost | its transaction committed, and it neither arrived nor is a dead letter |
//! | phantom | it arrived, and its transaction was rolled back or never existed |
//! | inversion | it arrived before one of its key that had committed before its own transaction began |
//! | duplicate | it arrived again |

mod check;
mod recorder;

pub use check::{Findings, Inversion};
pub use recorder::{Recorder, Transaction};

/// A message, as the producer and the far side of a sink both know it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sent {
    /// Its ordering key.
    pub key: String,
    /// Its number, unique within the key.
    pub n: u64,
}

impl Sent {
    /// The message number `n` of `key`.
    pub fn new(key: impl Into<String>, n: u64) -> Self {
        Self { key: key.into(), n }
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Its commit was confirmed.
    Committed,
    /// It was rolled back, or never reached its commit.
    RolledBack,
    /// Its commit was asked for and never answered: its messages may exist, all or none.
    Unknown,
}

/// A transaction that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// When it began, in steps of the whole history.
    pub began: u64,
    /// When its fate was known to the producer, in the same steps.
    pub ended: u64,
    /// How it ended.
    pub fate: Fate,
    /// Its messages, in the order they were emitted.
    pub messages: Vec<Sent>,
}

/// Everything that producers did, and what arrived at one sink.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The transactions.
    pub transactions: Vec<Ended>,
    /// What arrived, in this order, copies included.
    pub arrivals: Vec<Sent>,
    /// What is in the dead letters: it need not arrive.
    pub dead: Vec<Sent>,
}
