//! Writes a history down while it happens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Ended, Fate, History, Sent};

/// Shared by producers and the sink; clones write into one history.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    step: u64,
    history: History,
}

impl Notes {
    fn next_step(&mut self) -> u64 {
        self.step += 1;
        self.step
    }
}

/// A transaction that is being recorded. One that is dropped without a word was rolled back, unless its commit was
/// [begun](Transaction::committing): then its fate is unknown.
#[derive(Debug)]
pub struct Transaction {
    recorder: Recorder,
    began: u64,
    messages: Vec<Sent>,
    fate: Fate,
}

impl Recorder {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// To be called before the transaction is begun at the database.
    pub fn begin(&self) -> Transaction {
        Transaction {
            recorder: self.clone(),
            began: self.notes().next_step(),
            messages: Vec::new(),
            fate: Fate::RolledBack,
        }
    }

    /// A message arrived at the far side of the sink.
    pub fn arrived(&self, sent: Sent) {
        self.notes().history.arrivals.push(sent);
    }

    /// A message is in the dead letters.
    pub fn died(&self, sent: Sent) {
        self.notes().history.dead.push(sent);
    }

    /// How many arrivals there are so far, copies included.
    pub fn arrivals(&self) -> usize {
        self.notes().history.arrivals.len()
    }

    /// What was written down so far. Open transactions are not in it.
    pub fn history(&self) -> History {
        self.notes().history.clone()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction {
    /// A message is emitted in it.
    pub fn emit(&mut self, sent: Sent) {
        self.messages.push(sent);
    }

    /// To be called before the commit is asked for: from here to its answer nobody knows.
    pub fn committing(&mut self) {
        self.fate = Fate::Unknown;
    }

    /// The commit was confirmed.
    pub fn committed(mut self) {
        self.fate = Fate::Committed;
    }

    /// It was rolled back.
    pub fn rolled_back(mut self) {
        self.fate = Fate::RolledBack;
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let messages = std::mem::take(&mut self.messages);
        let mut notes = self.recorder.notes();
        let ended = notes.next_step();
        notes.history.transactions.push(Ended {
            began: self.began,
            ended,
            fate: self.fate,
            messages,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_is_dropped_is_rolled_back_or_unknown() {
        let recorder = Recorder::new();
        drop(recorder.begin());
        let mut tx = recorder.begin();
        tx.committing();
        drop(tx);
        let mut tx = recorder.begin();
        tx.committing();
        tx.committed();
        let fates: Vec<Fate> = recorder.history().transactions.iter().map(|ended| ended.fate).collect();
        assert_eq!(fates, [Fate::RolledBack, Fate::Unknown, Fate::Committed]);
    }
}
