//! Decisions that the database refuses to write, as where a privilege is missing.
//!
//! Their messages stay where they are in the tables and are not read again: they were delivered, or have to wait. They do
//! not count among what is in hand, so that they hold up nobody but the followers of their key. Writing them is tried
//! again, less and less often.

use super::*;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Refused {
    decided: Decided,
    /// When to try again.
    at: Option<Instant>,
    pause: Duration,
}

impl Refused {
    pub(super) fn len(&self) -> usize {
        self.decided.items.len()
    }

    pub(super) fn drop_lanes(&mut self, of: impl Fn(Lane) -> bool) {
        let decided = std::mem::take(&mut self.decided);
        for (item, settlement) in decided.items.into_iter().zip(decided.settlements) {
            if !of(settlement.place.lane) {
                self.push(item, settlement);
            }
        }
    }

    pub(super) fn of_lanes(&self, of: impl Fn(Lane) -> bool) -> Vec<ItemId> {
        let all = self.decided.items.iter().zip(&self.decided.settlements);
        let of_them = all.filter(|(_, settlement)| of(settlement.place.lane));
        of_them.map(|(item, _)| *item).collect()
    }

    fn push(&mut self, item: ItemId, settlement: Settlement) {
        self.decided.items.push(item);
        self.decided.settlements.push(settlement);
    }
}

impl Desk {
    /// These were refused at `now`.
    pub(super) fn refuse(&mut self, refused: Vec<(ItemId, Settlement)>, now: Instant) {
        let some = !refused.is_empty();
        for (item, settlement) in refused {
            // An item whose lane was lost meanwhile is gone.
            if self.items.contains_key(item) {
                self.refused.push(item, settlement);
            }
        }
        if some {
            let pause = (self.refused.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            self.refused.pause = pause;
            self.refused.at = Some(now + pause);
        } else if self.refused.len() == 0 {
            self.refused = Refused::default();
        }
    }

    /// When to try again to write what was refused.
    pub(crate) fn next_refused(&self) -> Option<Instant> {
        self.refused.at.filter(|_| self.refused.len() > 0)
    }

    /// What was refused and is to be tried again now.
    pub(crate) fn take_refused(&mut self, now: Instant) -> Option<Decided> {
        self.next_refused().filter(|at| now >= *at)?;
        Some(std::mem::take(&mut self.refused.decided))
    }
}
