//! Keys that are read again, because one of their messages was not sent.
//!
//! Messages of one key are dropped together. No later message of the key may be in flight before they are read again: neither
//! a queued one, nor one from a read that began before.

use std::sync::Arc;

use sendoff::store::{Lane, Row};

use super::KeyOrder;

impl KeyOrder {
    /// All messages of a key were dropped, and are read again.
    pub(in crate::dispatcher) fn reads_again(&mut self, lane: Lane, key: Arc<str>) {
        self.read_again.insert((lane, key));
    }

    /// Whether a row has to be dropped as well, because it is of a key that is read again.
    pub(in crate::dispatcher) fn drops(&self, row: &Row) -> bool {
        let (Row::Message(outgoing) | Row::Expired(outgoing)) = row else {
            return false;
        };
        let key = outgoing.key.as_deref().filter(|_| !self.read_again.is_empty());
        key.is_some_and(|key| self.read_again.contains(&(outgoing.row_ref.lane, Arc::from(key))))
    }
}
