//! Lanes that come and go.

use super::*;
use sendoff::store::Room;

/// After so many messages one at a time a lane goes on as usual, even if there are always more.
const CAREFUL_MESSAGES: u32 = 1000;

impl Desk {
    /// These lanes are the relay's now, with the keys that are blocked in them.
    pub(crate) fn gain(&mut self, grants: &[LaneGrant], blocked: Vec<BlockedKey>) {
        for grant in grants {
            let lane = HeldLane {
                epoch: grant.epoch,
                crashes: grant.crashes,
                suspect: grant.suspect.clone(),
                leaving: false,
                in_hand: 0,
                careful_done: 0,
                blocked: blocked::BlockedKeys::default(),
            };
            self.lanes.insert(grant.lane, lane);
        }
        for key in blocked {
            if let Some(lane) = self.lanes.get_mut(&key.lane) {
                lane.blocked.written(key.key, key.leg, self.round);
            }
        }
    }

    pub(crate) fn holds(&self, lane: Lane) -> bool {
        self.lanes.contains_key(&lane)
    }

    pub(crate) fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// Lanes that are held and not about to be given back.
    pub(crate) fn staying(&self) -> Vec<Lane> {
        let mut lanes: Vec<Lane> = self
            .lanes
            .iter()
            .filter(|(_, lane)| !lane.leaving)
            .map(|(lane, _)| *lane)
            .collect();
        lanes.sort_unstable();
        lanes
    }

    /// Starts to give lanes back: what is not with a sink is put down at once.
    pub(crate) fn leave(&mut self, lanes: &[Lane]) {
        for lane in lanes {
            if let Some(held) = self.lanes.get_mut(lane) {
                held.leaving = true;
            }
        }
        self.put_down(|lane| lanes.contains(&lane));
    }

    /// Whether lanes are being given back.
    pub(crate) fn is_leaving(&self) -> bool {
        self.lanes.values().any(|lane| lane.leaving)
    }

    /// Lanes that are being given back and have nothing in hand any more.
    pub(crate) fn ready_to_leave(&self) -> Vec<Lane> {
        self.lanes
            .iter()
            .filter(|(_, lane)| lane.leaving && lane.in_hand == 0)
            .map(|(lane, _)| *lane)
            .collect()
    }

    /// These lanes are somebody else's now: everything of theirs is dropped, nothing is written.
    pub(crate) fn lose(&mut self, lanes: &[Lane]) {
        for lane in lanes {
            self.lanes.remove(lane);
        }
        let items: Vec<ItemId> = self
            .items
            .iter()
            .filter(|(_, item)| lanes.contains(&item.delivery.place.lane))
            .map(|(id, _)| id)
            .collect();
        for id in items {
            self.drop_item(id);
        }
        self.careful.retain(|row| !lanes.contains(&row.place().lane));
        if self.careful_item.as_ref().is_some_and(|(lane, _)| lanes.contains(lane)) {
            self.careful_item = None;
        }
        let decided = std::mem::take(&mut self.to_settle);
        for (item, settlement) in decided.items.into_iter().zip(decided.settlements) {
            if !lanes.contains(&settlement.place.lane) {
                self.to_settle.items.push(item);
                self.to_settle.settlements.push(settlement);
            }
        }
        self.refused.drop_lanes(|lane| lanes.contains(&lane));
        self.failed.retain(|(lane, ..), _| !lanes.contains(lane));
        self.gates.retain(|(lane, ..), _| !lanes.contains(lane));
    }

    /// Drops everything that no sink has and no decision was made on. The rows stay where they are; whoever reads
    /// these lanes next finds them.
    fn put_down(&mut self, of: impl Fn(Lane) -> bool) {
        let refused = self.refused.of_lanes(&of);
        self.refused.drop_lanes(&of);
        let items: Vec<ItemId> = self
            .items
            .iter()
            .filter(|(_, item)| of(item.delivery.place.lane) && item.is_idle())
            .map(|(id, _)| id)
            .chain(refused)
            .collect();
        for id in items {
            self.drop_item(id);
        }
        self.careful.retain(|row| !of(row.place().lane));
    }

    /// Puts down all that is not with a sink, because the relay stops.
    pub(crate) fn put_down_all(&mut self) {
        for held in self.lanes.values_mut() {
            held.leaving = true;
        }
        self.put_down(|_| true);
    }

    /// Takes an item out of every list. Its chains go on without it.
    pub(super) fn drop_item(&mut self, id: ItemId) {
        let Some(item) = self.items.remove(id) else { return };
        self.bytes -= item.bytes;
        if let Some(lane) = self.lanes.get_mut(&item.delivery.place.lane) {
            lane.in_hand -= 1;
        }
        if self
            .careful_item
            .as_ref()
            .is_some_and(|(_, place)| *place == item.delivery.place)
        {
            self.careful_item = None;
            if let Some(lane) = self.lanes.get_mut(&item.delivery.place.lane) {
                lane.careful_done += 1;
            }
        }
        for leg in &item.legs {
            if let (true, Some(sink)) = (leg.at_sink, leg.sink) {
                self.sinks[sink].load -= 1;
            }
        }
        let Some(key) = &item.key else { return };
        for leg in &item.legs {
            let Some(sink) = leg.sink else { continue };
            if let Some(chain) = self.sinks[sink].chains.get_mut(key) {
                chain.retain(|ticket| ticket.item != id);
                if chain.is_empty() {
                    self.sinks[sink].chains.remove(key);
                }
            }
        }
    }

    /// The next row of a careful lane, when none is being worked on: it is to be noted as suspect before
    /// [`Desk::admit_careful`] is called.
    ///
    /// One that has to wait for another of its key is none: no sink gets to see it. As a dead letter it would be due again
    /// when an operator says so, before those that wait in front of it.
    pub(crate) fn next_careful(&mut self, now: Instant) -> Option<(Lane, Place)> {
        if self.careful_item.is_some() {
            return None;
        }
        while let Some(row) = self.careful.pop_front() {
            if self.has_to_wait(&row) {
                self.admit(row, now);
                continue;
            }
            let place = row.place().clone();
            self.careful.push_front(row);
            self.careful_item = Some((place.lane, place));
            return self.careful_item.clone();
        }
        None
    }

    /// Whether a message would go nowhere but behind the head of its key.
    pub(super) fn has_to_wait(&mut self, row: &Row) -> bool {
        let Row::Message(delivery) = row else { return false };
        let Some(key) = delivery.key.as_deref().map(Arc::<str>::from) else {
            return false;
        };
        let place = &delivery.place;
        if let (Room::Waiting, Some(leg)) = (place.room, &place.leg) {
            let failed = self.failed.get(&(place.lane, key, leg.clone()));
            return failed.is_some_and(|head| head.seq < place.seq);
        }
        let sinks = self.plan.topic(&delivery.topic).sinks;
        let Some(lane) = self.lanes.get(&place.lane) else {
            return false;
        };
        let is_blocked = |sink: &SinkIndex| lane.blocked.contains(&key, &self.plan.sinks[*sink].name);
        !sinks.is_empty() && sinks.iter().all(is_blocked)
    }

    /// The suspect is noted: now it may go.
    pub(crate) fn admit_careful(&mut self, now: Instant) {
        let Some((_, place)) = &self.careful_item else { return };
        match self.careful.pop_front() {
            Some(row) if row.place() == place => self.admit(row, now),
            // The lane was lost meanwhile, and with it the row.
            Some(row) => {
                self.careful.push_front(row);
                self.careful_item = None;
            }
            None => self.careful_item = None,
        }
    }

    /// The suspect could not be noted: it is tried again later.
    pub(crate) fn careful_failed(&mut self) {
        self.careful_item = None;
    }

    /// Lanes with crashes that have nothing more in hand to be careful about, or have been careful for long enough: what
    /// made relays crash is not among the next messages. They are careful no longer.
    pub(crate) fn absolve(&mut self, now: Instant) -> Vec<Lane> {
        let careful: Vec<Lane> = self.careful.iter().map(|row| row.place().lane).collect();
        let busy = self.careful_item.as_ref().map(|(lane, _)| *lane);
        let mut absolved = Vec::new();
        for (lane, held) in &mut self.lanes {
            let nothing_left = held.in_hand == 0 && !careful.contains(lane);
            let long_enough = held.careful_done >= CAREFUL_MESSAGES;
            if held.crashes > 0 && (nothing_left || long_enough) && busy != Some(*lane) {
                held.careful_done = 0;
                held.crashes = 0;
                held.suspect = None;
                absolved.push(*lane);
            }
        }
        // Rows that are read from now on do not queue here: they must not overtake those that did.
        let (free, careful) = std::mem::take(&mut self.careful)
            .into_iter()
            .partition(|row| absolved.contains(&row.place().lane));
        self.careful = careful;
        let free: VecDeque<Row> = free;
        for row in free {
            self.admit(row, now);
        }
        absolved
    }
}
