//! Lanes are gained, given back and lost.

use super::decide::effect_on_followers;
use super::order::{Followers, last_begun};
use super::*;

impl Dispatcher {
    /// These lanes are the relay's now, with the keys that are blocked in them.
    pub(crate) fn gain(&mut self, grants: &[LaneGrant], blocked: Vec<BlockedKey>, now: Instant) {
        for grant in grants {
            let lane = HeldLane {
                epoch: grant.epoch,
                crashes: grant.crashes,
                quarantined: grant.quarantined.clone(),
                leaving: false,
                in_flight: 0,
                gained: now,
            };
            self.lanes.insert(grant.lane, lane);
        }
        for key in blocked {
            if self.holds(key.lane) {
                self.order.known_blocked(key.into());
            }
        }
    }

    pub(crate) fn holds(&self, lane: Lane) -> bool {
        self.lanes.contains_key(&lane)
    }

    /// Whether a lane was gained within this time.
    pub(crate) fn gained_within(&self, lane: Lane, time: Duration, now: Instant) -> bool {
        self.lanes.get(&lane).is_some_and(|held| now - held.gained < time)
    }

    pub(crate) fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// Lanes that are held and not being given back.
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

    /// Starts to give lanes back: messages that are not with a sink are dropped immediately.
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

    /// Lanes that are being given back and have nothing in flight any more.
    pub(crate) fn ready_to_leave(&self) -> Vec<Lane> {
        self.lanes
            .iter()
            .filter(|(_, lane)| lane.leaving && (lane.in_flight == 0 || planted!(LeavesTooEarly)))
            .map(|(lane, _)| *lane)
            .collect()
    }

    /// These lanes belong to another relay now: all their messages are dropped, nothing is written.
    pub(crate) fn lose(&mut self, lanes: &[Lane]) {
        for lane in lanes {
            self.lanes.remove(lane);
        }
        let entries: Vec<EntryId> = self
            .entries
            .iter()
            .filter(|(_, entry)| lanes.contains(&entry.outgoing.row_ref.lane))
            .map(|(id, _)| id)
            .collect();
        for id in entries {
            self.drop_entry(id);
        }
        self.quarantine.lose(lanes);
        let decided = std::mem::take(&mut self.to_settle);
        for (entry, settlement) in decided.entries.into_iter().zip(decided.settlements) {
            if !lanes.contains(&settlement.row_ref.lane) {
                self.to_settle.entries.push(entry);
                self.to_settle.settlements.push(settlement);
            }
        }
        self.refused.lose(lanes);
        self.order.lose(lanes);
    }

    /// Everything that depends on the lease is lost.
    pub(crate) fn start_anew(&mut self, lanes: &[Lane]) {
        self.lose(lanes);
        (self.gone, self.forgotten) = Default::default();
        (0..self.sinks.len()).for_each(|sink| self.dropped(sink));
    }

    /// Drops everything that no sink has and no decision was made on, unless one behind it in its key was begun and would
    /// overtake it. The rows stay in the tables; the next relay that reads these lanes finds them.
    fn put_down(&mut self, of: impl Fn(Lane) -> bool) {
        self.hold_back();
        let refused = self.refused.of_lanes(&of);
        self.refused.give_back(&of);
        let begun = last_begun(&self.entries, &of);
        let stays = |entry: &Entry| {
            let key = entry.key.as_ref().filter(|_| !begun.is_empty());
            let last = key.and_then(|key| begun.get(&(entry.outgoing.row_ref.lane, key.clone())));
            last.is_some_and(|last| entry.outgoing.row_ref.seq < *last) && !planted!(PutDownOvertaken)
        };
        let entries: Vec<EntryId> = self
            .entries
            .iter()
            .filter(|(_, entry)| of(entry.outgoing.row_ref.lane) && entry.is_idle() && !stays(entry))
            .map(|(id, _)| id)
            .chain(refused)
            .collect();
        for id in entries {
            self.drop_entry(id);
        }
        self.quarantine.put_down(of);
        self.queue_heads();
    }

    /// Those that stay may have been behind others that do not: the first of each key queues.
    fn queue_heads(&mut self) {
        let queues = self.sinks.iter().flat_map(|sink_queue| &sink_queue.queue);
        let queued: FxHashSet<Ticket> = queues.chain(&self.doubts).copied().collect();
        let is_idle = |first: &Ticket| {
            let entry = self.entries.get(first.entry);
            let delivery = entry.map(|entry| &entry.deliveries[first.delivery]);
            delivery.is_some_and(|delivery| !delivery.with_sink && delivery.verdict.is_none())
        };
        let firsts = self
            .order
            .firsts()
            .filter(|first| is_idle(first) && !queued.contains(first));
        for first in firsts.collect::<Vec<_>>() {
            self.advance(first);
        }
    }

    /// Drops all messages that are not with a sink, because the relay stops.
    pub(crate) fn put_down_all(&mut self) {
        for held in self.lanes.values_mut() {
            held.leaving = true;
        }
        if planted!(DroppedAtStop) {
            self.deliver_idle();
        }
        self.put_down(|_| true);
    }

    /// A planted bug.
    #[cfg_attr(not(feature = "planted"), allow(dead_code, reason = "a bug on purpose"))]
    fn deliver_idle(&mut self) {
        let idle: Vec<EntryId> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.is_idle())
            .map(|(id, _)| id)
            .collect();
        for entry in idle {
            for delivery in 0..self.entries[entry].deliveries.len() {
                self.decide(Ticket { entry, delivery }, Verdict::Delivered);
            }
        }
    }

    /// Takes an entry out of every list. Its chains continue without it.
    pub(super) fn drop_entry(&mut self, id: EntryId) {
        let Some(entry) = self.entries.remove(id) else { return };
        self.bytes -= entry.bytes;
        if let Some(lane) = self.lanes.get_mut(&entry.outgoing.row_ref.lane) {
            lane.in_flight -= 1;
        }
        let tried = entry.deliveries.iter().any(|delivery| delivery.tried);
        self.quarantine.leave(&entry.outgoing.row_ref, tried);
        for delivery in &entry.deliveries {
            if let (true, Some(sink)) = (delivery.at_sink, delivery.sink) {
                self.sinks[sink].load -= 1;
            }
        }
        for (index, delivery) in entry.deliveries.iter().enumerate() {
            let followers = delivery.verdict.as_ref().map(effect_on_followers);
            // Those that let their followers go have left.
            let Some(at) = entry.key_ref(index).filter(|_| followers != Some(Followers::Go)) else {
                continue;
            };
            let ticket = Ticket {
                entry: id,
                delivery: index,
            };
            self.order.leaves(&at, ticket);
        }
    }
}
