//! Rows that were in flight when the broker closed the connection.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many are remembered. More than that were hardly on their way at once.
const MOST: usize = 10_000;

/// How often each was, by id.
#[derive(Debug, Default)]
pub(super) struct QuarantinedRows(Mutex<HashMap<i64, u32>>);

impl QuarantinedRows {
    pub(super) fn times(&self, id: i64) -> u32 {
        self.ids().get(&id).copied().unwrap_or(0)
    }

    pub(super) fn add(&self, id: i64) {
        let mut ids = self.ids();
        if ids.len() < MOST || ids.contains_key(&id) {
            *ids.entry(id).or_insert(0) += 1;
        }
    }

    pub(super) fn clear(&self, id: i64) {
        let mut ids = self.ids();
        if !ids.is_empty() {
            ids.remove(&id);
        }
    }

    fn ids(&self) -> MutexGuard<'_, HashMap<i64, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
