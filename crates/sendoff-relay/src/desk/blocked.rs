//! Keys whose followers have to wait.
//!
//! Settling tells when the last row of such a key is gone. What an operator discards or releases it does not tell: so the
//! store is asked again, once in a while, and keys that it does not know any more are forgotten. Without that they would
//! stay in memory for as long as the lane is held.

use super::*;

/// A key, and the sink where its followers have to wait.
type KeyAt = (Arc<str>, Arc<str>);

/// Why they have to.
pub(super) struct Blocked {
    /// How many of its rows are on the way to the waiting table (or block from the dead letters).
    unwritten: usize,
    /// When something happened to it last, counted in questions to the store.
    round: u32,
}

/// Blocked keys of a lane.
#[derive(Default)]
pub(super) struct BlockedKeys(FxHashMap<KeyAt, Blocked>);

impl BlockedKeys {
    pub(super) fn contains(&self, key: &Arc<str>, leg: &Arc<str>) -> bool {
        self.0.contains_key(&(key.clone(), leg.clone()))
    }

    /// A row of it is in the waiting table, or blocks from the dead letters.
    pub(super) fn written(&mut self, key: Arc<str>, leg: Arc<str>, round: u32) {
        self.entry(key, leg, round);
    }

    /// One more row of it is on its way there.
    pub(super) fn add_unwritten(&mut self, key: &Arc<str>, leg: &Arc<str>, round: u32) {
        self.entry(key.clone(), leg.clone(), round).unwritten += 1;
    }

    /// One of those has arrived.
    pub(super) fn arrived(&mut self, key: &Arc<str>, leg: &Arc<str>, round: u32) {
        if let Some(blocked) = self.0.get_mut(&(key.clone(), leg.clone())) {
            blocked.unwritten = blocked.unwritten.saturating_sub(1);
            blocked.round = round;
        }
    }

    /// Nothing of it is in the tables. Rows that are still on their way came after that was found, and block again.
    pub(super) fn free(&mut self, freed: &BlockedKey) {
        let key = (freed.key.clone(), freed.leg.clone());
        if self
            .0
            .get(&key)
            .is_some_and(|blocked| blocked.unwritten == 0 || planted!(FreedTooEarly))
        {
            self.0.remove(&key);
        }
    }

    fn entry(&mut self, key: Arc<str>, leg: Arc<str>, round: u32) -> &mut Blocked {
        let blocked = self.0.entry((key, leg)).or_insert(Blocked { unwritten: 0, round });
        blocked.round = round;
        blocked
    }
}

impl Desk {
    /// The store is about to be asked which keys are blocked in these lanes, where the desk knows some.
    pub(crate) fn begin_recheck(&mut self) -> Vec<Lane> {
        self.round = self.round.wrapping_add(1);
        let lanes = self.lanes.iter().filter(|(_, lane)| !lane.blocked.0.is_empty());
        lanes.map(|(lane, _)| *lane).collect()
    }

    /// Forgets the keys of these lanes that the store does not know, but for those to which something happened since it
    /// was asked.
    pub(crate) fn recheck(&mut self, lanes: &[Lane], blocked: Vec<BlockedKey>) {
        let mut known: FxHashMap<Lane, FxHashSet<KeyAt>> = FxHashMap::default();
        for key in blocked {
            known.entry(key.lane).or_default().insert((key.key, key.leg));
        }
        for lane in lanes {
            let Some(held) = self.lanes.get_mut(lane) else { continue };
            let known = known.get(lane);
            held.blocked.0.retain(|key, blocked| {
                let is_known = known.is_some_and(|known| known.contains(key));
                is_known || blocked.unwritten > 0 || blocked.round == self.round
            });
            held.blocked.0.shrink_to_fit();
        }
    }
}
