//! Results that the database refuses to write, for example because a privilege is missing.
//!
//! Their messages stay in the tables and are not read again: they were delivered, or have to wait. They do not count as in
//! flight, so that they block only the followers of their key. The relay tries to write them again, less and less often. What
//! is decided about followers of their key meanwhile is written behind them: alone in the waiting table, a follower would be
//! due before the message in front of it.

use super::*;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Refused {
    decided: Decided,
    /// When to try again.
    at: Option<Instant>,
    pause: Duration,
    /// Keys of results that were dropped, because their lane is being given back. No result of a follower is written either.
    dropped: FxHashSet<(Lane, Arc<str>)>,
}

impl Refused {
    pub(super) fn len(&self) -> usize {
        self.decided.entries.len()
    }

    #[cfg(test)]
    pub(super) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    #[cfg(test)]
    pub(super) fn decided(&self) -> &Decided {
        &self.decided
    }

    fn drop_lanes(&mut self, of: impl Fn(Lane) -> bool) {
        let decided = std::mem::take(&mut self.decided);
        for (entry, settlement) in decided.entries.into_iter().zip(decided.settlements) {
            if !of(settlement.row_ref.lane) {
                self.push(entry, settlement);
            }
        }
    }

    /// These lanes are being given back, without the results.
    pub(super) fn give_back(&mut self, of: impl Fn(Lane) -> bool) {
        let keys = self.decided.settlements.iter().filter_map(key_of);
        self.dropped.extend(keys.filter(|(lane, _)| of(*lane)));
        self.drop_lanes(of);
    }

    /// These lanes belong to another relay now.
    pub(super) fn lose(&mut self, lanes: &[Lane]) {
        self.drop_lanes(|lane| lanes.contains(&lane));
        self.dropped.retain(|(lane, _)| !lanes.contains(lane));
    }

    pub(super) fn of_lanes(&self, of: impl Fn(Lane) -> bool) -> Vec<EntryId> {
        let all = self.decided.entries.iter().zip(&self.decided.settlements);
        let of_them = all.filter(|(_, settlement)| of(settlement.row_ref.lane));
        of_them.map(|(entry, _)| *entry).collect()
    }

    fn push(&mut self, entry: EntryId, settlement: Settlement) {
        self.decided.entries.push(entry);
        self.decided.settlements.push(settlement);
    }
}

fn key_of(settlement: &Settlement) -> Option<(Lane, Arc<str>)> {
    Some((settlement.row_ref.lane, settlement.key.clone()?))
}

impl Dispatcher {
    /// These were refused at `now`.
    pub(super) fn refuse(&mut self, refused: Vec<(EntryId, Settlement)>, now: Instant) {
        let some = !refused.is_empty();
        for (entry, settlement) in refused {
            // An entry whose lane was lost meanwhile is gone.
            if self.entries.contains_key(entry) {
                self.refused.push(entry, settlement);
            }
        }
        if some {
            let pause = (self.refused.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            self.refused.pause = pause;
            self.refused.at = Some(now + pause);
        } else if self.refused.len() == 0 {
            (self.refused.at, self.refused.pause) = (None, Duration::ZERO);
        }
    }

    /// Results of messages behind a refused one, in its key, wait with it.
    pub(super) fn hold_back(&mut self) {
        if self.refused.len() == 0 && self.refused.dropped.is_empty() {
            return;
        }
        let keys: FxHashSet<_> = self.refused.decided.settlements.iter().filter_map(key_of).collect();
        let decided = std::mem::take(&mut self.to_settle);
        for (entry, settlement) in decided.entries.into_iter().zip(decided.settlements) {
            let key = key_of(&settlement);
            if key.as_ref().is_some_and(|key| self.refused.dropped.contains(key)) {
                self.drop_entry(entry);
            } else if key.is_some_and(|key| keys.contains(&key)) {
                self.refused.push(entry, settlement);
            } else {
                self.to_settle.entries.push(entry);
                self.to_settle.settlements.push(settlement);
            }
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
