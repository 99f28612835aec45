//! Leases: who holds which lane.

use std::sync::Arc;

use sendoff::store::{Heartbeat, Lane, LaneGrant, OwnerId, Suspect};
use sendoff::{Error, ErrorKind, Result};

use super::clock::Micros;
use super::tables::{LaneRow, Tables};

impl Tables {
    pub(super) fn has_lease(&self, owner: OwnerId, now: Micros) -> bool {
        self.relays.get(&owner).is_some_and(|until| *until > now)
    }

    pub(super) fn heartbeat(&mut self, owner: OwnerId, until: Micros, now: Micros) -> Heartbeat {
        let alive = self.has_lease(owner, now);
        if alive {
            self.relays.insert(owner, until);
        }
        let valid = self.relays.iter().filter(|(_, until)| **until > now);
        Heartbeat {
            alive,
            relays: valid.map(|(owner, _)| *owner).collect(),
        }
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
                suspect: row.suspect.clone().map(|(seq, leg)| Suspect {
                    seq,
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
        self.relays.retain(|_, until| *until > now);
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

    pub(super) fn suspect(&mut self, owner: OwnerId, lane: Lane, suspect: Option<(i64, Option<&str>)>) {
        let suspect = suspect.map(|(seq, leg)| (seq, leg.map(Arc::from)));
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
