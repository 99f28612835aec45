//! Rows that were on their way when the broker hung up.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many are remembered. More than that were hardly on their way at once.
const MOST: usize = 10_000;

/// Their ids.
#[derive(Debug, Default)]
pub(super) struct Suspects(Mutex<HashSet<i64>>);

impl Suspects {
    pub(super) fn has(&self, id: i64) -> bool {
        self.ids().contains(&id)
    }

    pub(super) fn add(&self, id: i64) {
        let mut ids = self.ids();
        if ids.len() < MOST {
            ids.insert(id);
        }
    }

    pub(super) fn clear(&self, id: i64) {
        let mut ids = self.ids();
        if !ids.is_empty() {
            ids.remove(&id);
        }
    }

    fn ids(&self) -> MutexGuard<'_, HashSet<i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
