//! The shop's transactions and what the handlers saw. Kept separate from the outbox, so that the proof does not depend
//! on it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sendoff::Uuid;

/// How many recent events the screen shows.
pub(super) const RECENT: usize = 8;

/// The kind of a recent event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    Committed,
    RolledBack,
    Delivered,
    Failed,
    Dead,
    Killed,
}

/// A recent event, for the screen.
#[derive(Debug, Clone)]
pub(super) struct Recent {
    pub(super) happened: Happened,
    pub(super) words: String,
}

/// A message of a transaction that committed.
#[derive(Debug, Clone)]
pub(super) struct Committed {
    pub(super) key: Option<String>,
    /// The number of its transaction.
    pub(super) at: u64,
}

/// Everything that was recorded.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) committed: HashMap<Uuid, Committed>,
    pub(super) rolled_back: HashSet<Uuid>,
    /// Committed orders: the shop's own table must hold as many rows.
    pub(super) orders: u64,
    /// Handed to a handler, whether it succeeded or failed.
    pub(super) seen: HashSet<Uuid>,
    /// Taken by a handler, in the order of first arrivals.
    pub(super) arrived: Vec<Uuid>,
    arrived_ids: HashSet<Uuid>,
    /// How often a handler took a message that had already been taken.
    pub(super) copies: u64,
    /// Failed attempts that will be retried.
    pub(super) failed: u64,
    pub(super) dead: u64,
    pub(super) relays_killed: u64,
    pub(super) recent: VecDeque<Recent>,
}

/// Shared by the shop, the handlers and the screen.
#[derive(Debug, Clone, Default)]
pub(super) struct Record(Arc<Mutex<Notes>>);

impl Record {
    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction of the shop committed.
    pub(super) fn committed(&self, number: u64, messages: Vec<(Uuid, Option<String>)>, words: String) {
        let mut notes = self.notes();
        notes.orders += 1;
        let messages = messages
            .into_iter()
            .map(|(id, key)| (id, Committed { key, at: number }));
        notes.committed.extend(messages);
        notes.tell(Happened::Committed, words);
    }

    /// A transaction of the shop was rolled back.
    pub(super) fn rolled_back(&self, messages: Vec<Uuid>, words: String) {
        let mut notes = self.notes();
        notes.rolled_back.extend(messages);
        notes.tell(Happened::RolledBack, words);
    }

    /// A message was handed to a handler.
    pub(super) fn seen(&self, id: Uuid) {
        self.notes().seen.insert(id);
    }

    /// A handler took a message.
    pub(super) fn arrived(&self, id: Uuid, words: String) {
        let mut notes = self.notes();
        if notes.arrived_ids.insert(id) {
            notes.arrived.push(id);
        } else {
            notes.copies += 1;
        }
        notes.tell(Happened::Delivered, words);
    }

    /// An attempt failed and will be retried.
    pub(super) fn failed(&self, words: String) {
        let mut notes = self.notes();
        notes.failed += 1;
        notes.tell(Happened::Failed, words);
    }

    /// A message became a dead letter.
    pub(super) fn died(&self, words: String) {
        let mut notes = self.notes();
        notes.dead += 1;
        notes.tell(Happened::Dead, words);
    }

    /// A relay was killed.
    pub(super) fn killed(&self, words: String) {
        let mut notes = self.notes();
        notes.relays_killed += 1;
        notes.tell(Happened::Killed, words);
    }
}

impl Notes {
    fn tell(&mut self, happened: Happened, words: String) {
        // Rare events stay on the screen for a while; otherwise frequent ones would push them off immediately.
        let common = matches!(happened, Happened::Committed | Happened::Delivered);
        if common && let Some(last) = self.recent.back_mut().filter(|last| last.happened == happened) {
            last.words = words;
            return;
        }
        if self.recent.len() == RECENT {
            let oldest_common = self
                .recent
                .iter()
                .position(|recent| matches!(recent.happened, Happened::Committed | Happened::Delivered));
            self.recent.remove(oldest_common.unwrap_or(0));
        }
        self.recent.push_back(Recent { happened, words });
    }
}
