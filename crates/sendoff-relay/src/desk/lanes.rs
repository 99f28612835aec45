//! Lanes that come and go.

use super::*;

impl Desk {
    /// These lanes are the relay's now, with the keys that are blocked in them.
    pub(crate) fn gain(&mut self, grants: &[LaneGrant], blocked: Vec<BlockedKey>, now: Instant) {
        for grant in grants {
            let lane = HeldLane {
                epoch: grant.epoch,
                crashes: grant.crashes,
                suspect: grant.suspect.clone(),
                leaving: false,
                in_hand: 0,
                gained: now,
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
            .filter(|(_, lane)| lane.leaving && (lane.in_hand == 0 || planted!(LeavesTooEarly)))
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
        self.quarantine.lose(lanes);
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

    /// Drops everything that no sink has and no decision was made on, unless one behind it in its key was begun and would
    /// overtake it. The rows stay where they are; whoever reads these lanes next finds them.
    fn put_down(&mut self, of: impl Fn(Lane) -> bool) {
        let refused = self.refused.of_lanes(&of);
        self.refused.drop_lanes(&of);
        let begun = self.last_begun(&of);
        let stays = |item: &Item| {
            let key = item.key.as_ref().filter(|_| !begun.is_empty());
            let last = key.and_then(|key| begun.get(&(item.delivery.place.lane, key.clone())));
            last.is_some_and(|last| item.delivery.place.seq < *last) && !planted!(PutDownOvertaken)
        };
        let items: Vec<ItemId> = self
            .items
            .iter()
            .filter(|(_, item)| of(item.delivery.place.lane) && item.is_idle() && !stays(item))
            .map(|(id, _)| id)
            .chain(refused)
            .collect();
        for id in items {
            self.drop_item(id);
        }
        self.quarantine.put_down(of);
        self.queue_heads();
    }

    /// Those that stay may have been behind others that do not: the first of each key queues.
    fn queue_heads(&mut self) {
        for sink in 0..self.sinks.len() {
            let queued: FxHashSet<Ticket> = self.sinks[sink].queue.iter().chain(&self.doubts).copied().collect();
            let heads = self.sinks[sink]
                .chains
                .values()
                .filter_map(|chain| chain.front().copied());
            let idle = heads.filter(|head| {
                let leg = self.items.get(head.item).map(|item| &item.legs[head.leg]);
                leg.is_some_and(|leg| !leg.with_sink && leg.verdict.is_none()) && !queued.contains(head)
            });
            for head in idle.collect::<Vec<_>>() {
                self.join_queue(sink, head);
            }
        }
    }

    /// Of each key of which a message was begun at one of its sinks and has to go to another: the last such message. Those
    /// before it have to go first.
    fn last_begun(&self, of: impl Fn(Lane) -> bool) -> FxHashMap<(Lane, Arc<str>), i64> {
        let mut begun = FxHashMap::default();
        for item in self.items.values() {
            let place = &item.delivery.place;
            let is_open = item.legs.len() > 1 && item.undecided > 0 && !item.is_idle();
            if let Some(key) = item.key.as_ref().filter(|_| is_open && of(place.lane)) {
                let last = begun.entry((place.lane, key.clone())).or_insert(place.seq);
                *last = place.seq.max(*last);
            }
        }
        begun
    }

    /// Puts down all that is not with a sink, because the relay stops.
    pub(crate) fn put_down_all(&mut self) {
        for held in self.lanes.values_mut() {
            held.leaving = true;
        }
        if planted!(DroppedAtStop) {
            self.deliver_idle();
        }
        self.put_down(|_| true);
    }

    /// A bug on purpose.
    #[cfg_attr(not(feature = "planted"), allow(dead_code, reason = "a bug on purpose"))]
    fn deliver_idle(&mut self) {
        let idle: Vec<ItemId> = self
            .items
            .iter()
            .filter(|(_, item)| item.is_idle())
            .map(|(id, _)| id)
            .collect();
        for item in idle {
            for leg in 0..self.items[item].legs.len() {
                self.decide(Ticket { item, leg }, Verdict::Delivered);
            }
        }
    }

    /// Takes an item out of every list. Its chains go on without it.
    pub(super) fn drop_item(&mut self, id: ItemId) {
        let Some(item) = self.items.remove(id) else { return };
        self.bytes -= item.bytes;
        if let Some(lane) = self.lanes.get_mut(&item.delivery.place.lane) {
            lane.in_hand -= 1;
        }
        let tried = item.legs.iter().any(|leg| leg.tried);
        self.quarantine.leave(&item.delivery.place, tried);
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
}
