//! Blocked keys that are free without a report.
//!
//! Settling reports when the last row of a blocked key is gone, but not when an operator discards or releases it. So the
//! relay reads the blocked keys from the store from time to time, and forgets keys that are free. Otherwise they would stay
//! in memory while the lane is held.

use rustc_hash::FxHashSet;
use sendoff::store::{BlockedKey, Lane};

use super::{KeyOrder, KeyRef};

impl KeyOrder {
    /// The store is about to be asked. Returns the lanes with blocked keys.
    pub(in crate::dispatcher) fn begin_recheck(&mut self) -> Vec<Lane> {
        self.round = self.round.wrapping_add(1);
        let blocked = self.keys.iter().filter(|(_, key)| key.blocked.is_some());
        let lanes: FxHashSet<Lane> = blocked.map(|(at, _)| at.lane).collect();
        let mut lanes: Vec<Lane> = lanes.into_iter().collect();
        lanes.sort_unstable();
        lanes
    }

    /// Frees the keys of these lanes that the store does not know, except those that changed since it was asked.
    pub(in crate::dispatcher) fn recheck(&mut self, lanes: &[Lane], blocked: Vec<BlockedKey>) {
        let lanes: FxHashSet<Lane> = lanes.iter().copied().collect();
        let known: FxHashSet<KeyRef> = blocked.into_iter().map(KeyRef::from).collect();
        let round = self.round;
        self.keys.retain(|at, key| {
            if lanes.contains(&at.lane) && !known.contains(at) {
                key.blocked
                    .take_if(|blocked| blocked.unwritten == 0 && blocked.round != round);
            }
            !key.is_idle()
        });
        // Keys in flight come and go: only a map that was much larger gives memory back.
        self.keys.shrink_to(self.keys.len() * 4);
    }
}
