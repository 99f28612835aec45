//! Decisions that were written.

use super::decide::{Followers, effect_on_followers};
use super::*;
use crate::DeadLetter;
use crate::settle::Written;

impl Desk {
    /// A batch of settlements has been carried out, but for those that were refused.
    pub(crate) fn settled(&mut self, decided: Decided, written: &Written, now: Instant) {
        let (report, mut dead, mut refused) = (&written.report, Vec::new(), Vec::new());
        for (at, (id, settlement)) in decided.items.into_iter().zip(decided.settlements).enumerate() {
            if report.lost.contains(&settlement.place.lane) {
                continue;
            }
            if written.refused.binary_search(&at).is_ok() {
                refused.push((id, settlement));
                continue;
            }
            if !settlement.legs.is_empty() && !self.hooks.is_empty() {
                dead.extend(self.dead_legs(id));
            }
            // An item whose lane was lost meanwhile is gone already.
            if self.finish(id) {
                self.gone.push(settlement.place);
            }
        }
        if !dead.is_empty() {
            self.hooks
                .each("dead_lettered_batch", |hook| hook.dead_lettered_batch(&dead));
        }
        self.refuse(refused, now);
        for freed in &report.freed {
            if let Some(lane) = self.lanes.get_mut(&freed.lane) {
                lane.blocked.free(freed);
            }
        }
        if !report.lost.is_empty() {
            tracing::warn!(event = "lanes_lost", lanes = ?report.lost, "lanes were taken over by another relay");
            self.lose(&report.lost);
        }
    }

    /// The legs of an item that are dead letters now.
    fn dead_legs(&self, id: ItemId) -> SmallVec<[DeadLetter; 1]> {
        let Some(item) = self.items.get(id) else {
            return SmallVec::new();
        };
        let dead = item.legs.iter().filter_map(|leg| match &leg.verdict {
            Some(Verdict::Dead { reason, error, .. }) => Some(DeadLetter {
                delivery: item.delivery.clone(),
                leg: leg.name.clone(),
                reason: *reason,
                error: error.clone(),
            }),
            _ => None,
        });
        dead.collect()
    }

    fn finish(&mut self, id: ItemId) -> bool {
        let Some(item) = self.items.get(id) else { return false };
        let (lane, key) = (item.delivery.place.lane, item.key.clone());
        let mut free = SmallVec::<[(SinkIndex, Ticket); 1]>::new();
        for (index, leg) in item.legs.iter().enumerate() {
            let Some(verdict) = &leg.verdict else { continue };
            match verdict {
                Verdict::Delivered => self.report.delivered += 1,
                Verdict::Retry { .. } => self.report.retried += 1,
                Verdict::Dead { .. } => self.report.dead += 1,
                Verdict::Hold => {}
            }
            let Some(key) = &key else { continue };
            match (effect_on_followers(verdict), leg.sink) {
                (Followers::Go, _) | (Followers::GoOnceSettled, None) => {}
                (Followers::GoOnceSettled, Some(sink)) => free.push((sink, Ticket { item: id, leg: index })),
                (Followers::Wait, _) => {
                    let failed = self.failed.get_mut(&(lane, key.clone(), leg.name.clone()));
                    if let Some(head) = failed.filter(|head| head.seq == item.delivery.place.seq) {
                        head.written = true;
                    }
                    if let Some(lane) = self.lanes.get_mut(&lane) {
                        lane.blocked.arrived(key, &leg.name, self.round);
                    }
                }
            }
        }
        if let Some(key) = &key {
            for (sink, ticket) in free {
                self.advance(sink, key, ticket);
            }
        }
        self.drop_item(id);
        true
    }
}
