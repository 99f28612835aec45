//! Leases: who holds which lane.

use sendoff::store::{Heartbeat, History, Lane, LaneGrant, LiveRelay, OwnerId, Quarantined, RowRef};
use sendoff::{Error, ErrorKind, Result};

use super::clock::Micros;
use super::tables::{LaneRow, Lease, Tables};

impl Tables {
    pub(super) fn has_lease(&self, owner: OwnerId, now: Micros) -> bool {
        self.relays.get(&owner).is_some_and(|lease| lease.is_valid(now))
    }

    pub(super) fn heartbeat(&mut self, owner: OwnerId, length: Micros, now: Micros) -> Heartbeat {
        // Its owner lives, so a lease that is too far ahead is renewed as well.
        let alive = self.relays.get(&owner).is_some_and(|lease| lease.until > now);
        if alive {
            self.register(owner, length, now);
        }
        let valid = self.relays.iter().filter(|(_, lease)| lease.is_valid(now));
        Heartbeat {
            alive,
            relays: valid.map(|(owner, _)| self.live(*owner)).collect(),
            history: Some(History {
                server: self.history.to_string(),
                head: self.next_seq - 1,
            }),
        }
    }

    fn live(&self, owner: OwnerId) -> LiveRelay {
        let card = self.cards.get(&owner).cloned().unwrap_or_default();
        LiveRelay {
            owner,
            config: card.config,
            routes: card.routes,
        }
    }

    pub(super) fn register(&mut self, owner: OwnerId, length: Micros, now: Micros) {
        let until = now.saturating_add(length);
        self.relays.insert(owner, Lease { until, length });
    }

    pub(super) fn acquire(&mut self, owner: OwnerId, limit: usize, now: Micros) -> Result<Vec<LaneGrant>> {
        if !self.has_lease(owner, now) {
            return Err(Error::new(ErrorKind::LeaseLost, "the relay cannot lease lanes")
                .because("its own lease has run out or was taken away")
                .next_step("register again"));
        }
        let free = (0..).zip(&mut self.lanes).filter(|(_, row)| row.owner.is_none());
        let grant = |(lane, row): (Lane, &mut LaneRow)| {
            row.owner = Some(owner);
            row.epoch += 1;
            LaneGrant {
                lane,
                epoch: row.epoch,
                crashes: row.crashed.len() as u32,
                quarantined: row.quarantined.clone().map(|quarantined| Quarantined {
                    crashes: row.quarantine_crashed.len() as u32,
                    ..quarantined
                }),
            }
        };
        Ok(free.take(limit).map(grant).collect())
    }

    pub(super) fn release(&mut self, owner: OwnerId, lanes: &[Lane]) {
        for row in self.held_by(owner, lanes) {
            row.give_up(owner);
        }
    }

    pub(super) fn deregister(&mut self, owner: OwnerId) {
        for row in &mut self.lanes {
            // It lives: whatever was counted against it was no crash.
            row.crashed.retain(|crashed| *crashed != owner);
            row.quarantine_crashed.retain(|crashed| *crashed != owner);
            if row.owner == Some(owner) {
                row.give_up(owner);
                row.crashed.clear();
            }
        }
        self.relays.remove(&owner);
        self.figures.remove(&owner);
    }

    /// Strikes off the relays whose lease has run out at `now`, and frees every lane whose owner is not there.
    pub(super) fn evict(&mut self, now: Micros) -> u64 {
        if planted!(NeverEvicts) {
            return 0;
        }
        self.relays.retain(|_, lease| lease.is_valid(now));
        self.figures.retain(|owner, _| self.relays.contains_key(owner));
        let mut freed = 0;
        for row in &mut self.lanes {
            let Some(owner) = row.owner.filter(|owner| !self.relays.contains_key(owner)) else {
                continue;
            };
            row.owner = None;
            row.epoch += 1;
            row.crashed.push(owner);
            if row.quarantine_by.take() == Some(owner) {
                row.quarantine_crashed.push(owner);
            }
            freed += 1;
        }
        freed
    }

    pub(super) fn clear_quarantine(&mut self, owner: OwnerId, lanes: &[Lane]) {
        for row in self.held_by(owner, lanes) {
            row.crashed.clear();
            row.forget_quarantine();
        }
    }

    pub(super) fn quarantine(&mut self, owner: OwnerId, lane: Lane, rows: &[RowRef]) {
        let quarantined = Quarantined::of(rows);
        for (at, row) in (0..).zip(&mut self.lanes) {
            let held = row.owner == Some(owner);
            if held && at == lane {
                let same = |(old, new): (&Quarantined, &Quarantined)| old.is_same(new);
                if !row.quarantined.as_ref().zip(quarantined.as_ref()).is_some_and(same) {
                    row.quarantine_crashed.clear();
                }
                row.quarantine_by = quarantined.as_ref().map(|_| owner);
                row.quarantined.clone_from(&quarantined);
            } else if held && row.quarantine_by == Some(owner) {
                row.forget_quarantine();
            }
        }
    }

    fn held_by<'a>(&'a mut self, owner: OwnerId, lanes: &'a [Lane]) -> impl Iterator<Item = &'a mut LaneRow> {
        let rows = (0..).zip(&mut self.lanes);
        rows.filter(move |(lane, row)| row.owner == Some(owner) && lanes.contains(lane))
            .map(|(_, row)| row)
    }
}

impl LaneRow {
    /// The owner lets go of its own will, so what it worked on is no quarantined message.
    fn give_up(&mut self, owner: OwnerId) {
        self.owner = None;
        self.epoch += 1;
        if self.quarantine_by == Some(owner) {
            self.forget_quarantine();
        }
    }

    fn forget_quarantine(&mut self) {
        (self.quarantined, self.quarantine_by) = (None, None);
        self.quarantine_crashed.clear();
    }
}
