//! Leases: who holds which lane.

use sendoff::store::{Heartbeat, History, Lane, LaneGrant, OwnerId, Place, Suspect};
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
            self.enlist(owner, length, now);
        }
        let valid = self.relays.iter().filter(|(_, lease)| lease.is_valid(now));
        Heartbeat {
            alive,
            relays: valid.map(|(owner, _)| *owner).collect(),
            history: Some(History {
                server: self.history.to_string(),
                head: self.next_seq - 1,
            }),
        }
    }

    pub(super) fn enlist(&mut self, owner: OwnerId, length: Micros, now: Micros) {
        let until = now.saturating_add(length);
        self.relays.insert(owner, Lease { until, length });
    }

    pub(super) fn acquire(&mut self, owner: OwnerId, limit: usize, now: Micros) -> Result<Vec<LaneGrant>> {
        if !self.has_lease(owner, now) {
            return Err(Error::new(ErrorKind::LeaseLost, "the relay cannot lease lanes")
                .because("its own lease has run out or was taken away")
                .next_step("enlist again"));
        }
        let free = (0..).zip(&mut self.lanes).filter(|(_, row)| row.owner.is_none());
        let grant = |(lane, row): (Lane, &mut LaneRow)| {
            row.owner = Some(owner);
            row.epoch += 1;
            LaneGrant {
                lane,
                epoch: row.epoch,
                crashes: row.crashes,
                suspect: row.suspect.clone().map(|(seq, id, leg)| Suspect {
                    seq,
                    id,
                    leg,
                    crashes: row.suspect_crashes,
                }),
            }
        };
        Ok(free.take(limit).map(grant).collect())
    }

    pub(super) fn release(&mut self, owner: OwnerId, lanes: &[Lane]) {
        for row in self.held_by(owner, lanes) {
            row.give_up();
        }
    }

    pub(super) fn retire(&mut self, owner: OwnerId) {
        for row in self.lanes.iter_mut().filter(|row| row.owner == Some(owner)) {
            row.give_up();
            row.crashes = 0;
        }
        self.relays.remove(&owner);
    }

    /// Strikes off the relays whose lease has run out at `now`, and frees every lane whose owner is not there.
    pub(super) fn evict(&mut self, now: Micros) -> u64 {
        self.relays.retain(|_, lease| lease.is_valid(now));
        let mut freed = 0;
        for row in &mut self.lanes {
            let vanished = row.owner.is_some_and(|owner| !self.relays.contains_key(&owner));
            if vanished {
                row.owner = None;
                row.epoch += 1;
                row.crashes += 1;
                row.suspect_crashes += u32::from(row.suspect.is_some());
                freed += 1;
            }
        }
        freed
    }

    pub(super) fn absolve(&mut self, owner: OwnerId, lanes: &[Lane]) {
        for row in self.held_by(owner, lanes) {
            row.crashes = 0;
        }
    }

    pub(super) fn suspect(&mut self, owner: OwnerId, lane: Lane, suspect: Option<&Place>) {
        let suspect = suspect.map(|place| (place.seq, place.id.clone(), place.leg.clone()));
        for row in self.held_by(owner, &[lane]) {
            if row.suspect != suspect || suspect.is_none() {
                row.suspect_crashes = 0;
            }
            row.suspect.clone_from(&suspect);
        }
    }

    fn held_by<'a>(&'a mut self, owner: OwnerId, lanes: &'a [Lane]) -> impl Iterator<Item = &'a mut LaneRow> {
        let rows = (0..).zip(&mut self.lanes);
        rows.filter(move |(lane, row)| row.owner == Some(owner) && lanes.contains(lane))
            .map(|(_, row)| row)
    }
}

impl LaneRow {
    /// The owner lets go of its own will, so what it worked on is no suspect.
    fn give_up(&mut self) {
        self.owner = None;
        self.epoch += 1;
        self.suspect = None;
        self.suspect_crashes = 0;
    }
}
