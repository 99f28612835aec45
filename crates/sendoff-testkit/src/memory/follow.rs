//! The order of a key in the waiting table.
//!
//! Among the rows of one lane, key and delivery that block, those that have a due time are the first ones by `seq`: a row is
//! never due while one before it still has to wait.

use std::collections::BTreeSet;
use std::sync::Arc;

use sendoff::store::{BlockedKey, Lane};

use super::clock::Micros;
use super::tables::{DeliveryAt, Tables, UNROUTED, WaitState, Waiting};

/// How many followers are released at a time.
const FOLLOWERS: usize = 64;

impl Tables {
    /// Whether a delivery has to wait for others of its key. A row that is not routed yet may go to any delivery.
    pub(super) fn is_held(&self, (lane, seq, sink, _): &DeliveryAt, key: &str) -> bool {
        let same_delivery = |other: &Arc<str>| other == sink || **other == *UNROUTED;
        self.waiting_in(*lane).any(|((_, other, other_delivery, _), row)| {
            // One that is held behind it waits for this one.
            let is_before = other < seq || row.state != WaitState::Blocked;
            other != seq
                && is_before
                && same_delivery(other_delivery)
                && row.state.blocks()
                && row.content.key.as_deref() == Some(key)
        }) || self.has_blocking_dead(*lane, key, same_delivery)
    }

    /// Lets the next rows of a key go. Returns whether there were any. When a row left that was not routed, it may have
    /// held rows of any delivery.
    pub(super) fn follow_on(&mut self, lane: Lane, key: &str, sink: &str, now: Micros) -> bool {
        if sink != UNROUTED {
            return self.follow_on_sink(lane, key, sink, now);
        }
        let of_key = self
            .waiting_in(lane)
            .filter(|(_, row)| row.content.key.as_deref() == Some(key));
        let deliveries: BTreeSet<Arc<str>> = of_key.map(|((_, _, sink, _), _)| sink.clone()).collect();
        // All of them: `any` would stop at the first delivery that has followers.
        deliveries
            .iter()
            .filter(|sink| self.follow_on_sink(lane, key, sink, now))
            .count()
            > 0
    }

    fn follow_on_sink(&mut self, lane: Lane, key: &str, sink: &str, now: Micros) -> bool {
        let same_delivery = |other: &Arc<str>| **other == *sink || **other == *UNROUTED;
        if planted!(BlockedForEver) || self.has_blocking_dead(lane, key, same_delivery) {
            return false;
        }
        let rows = self.waiting_in_mut(lane).filter(|((_, _, other, _), row)| {
            same_delivery(other) && row.state.blocks() && row.content.key.as_deref() == Some(key)
        });
        let mut let_go = 0;
        for ((_, _, other, _), row) in rows {
            match row.due_at {
                // Its turn comes first, and it has not come yet.
                Some(due) if due > now => break,
                // Where it will go is not known, so nothing of any delivery may pass it.
                _ if **other != *sink => break,
                Some(_) => {}
                None if let_go == FOLLOWERS => break,
                None => {
                    row.due_at = Some(now);
                    let_go += 1;
                }
            }
        }
        let_go > 0
    }

    /// Those behind a row that has to wait are held again, even if their turn had come.
    pub(super) fn block_followers(&mut self, lane: Lane, key: &str, sink: &str, seq: i64) {
        for ((_, other, other_delivery, _), row) in self.waiting_in_mut(lane) {
            let behind = *other > seq
                && (**other_delivery == *sink || sink == UNROUTED)
                && row.content.key.as_deref() == Some(key);
            if behind && row.state.blocks() && row.due_at.is_some() {
                row.state = WaitState::Blocked;
                row.due_at = None;
            }
        }
    }

    /// Whether anything of a key still waits or blocks.
    pub(super) fn key_left(&self, blocked: &BlockedKey) -> bool {
        let same_delivery = |sink: &Arc<str>| *sink == blocked.sink;
        self.waiting_in(blocked.lane).any(|((_, _, sink, _), row)| {
            same_delivery(sink) && row.state.blocks() && row.content.key.as_deref() == Some(&*blocked.key)
        }) || self.has_blocking_dead(blocked.lane, &blocked.key, same_delivery)
    }

    pub(super) fn blocked_keys(&self, lanes: &[Lane]) -> Vec<BlockedKey> {
        let waiting = self
            .waiting
            .iter()
            .filter(|(_, row)| row.state.blocks())
            .map(|(at, row)| (at, &row.content));
        let dead = self
            .dead
            .iter()
            .filter(|(_, row)| row.blocks && !planted!(DeadDoNotBlock))
            .map(|(at, row)| (at, &row.content));
        let blocked = waiting.chain(dead).filter_map(|((lane, _, sink, _), content)| {
            lanes.contains(lane).then_some(BlockedKey {
                lane: *lane,
                key: content.key.as_deref()?.into(),
                sink: sink.clone(),
            })
        });
        // Sorted and without repetitions.
        blocked.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Lets go of held rows in these lanes that nothing holds any more. Returns how many.
    pub(super) fn release_orphans(&mut self, lanes: &[Lane], now: Micros) -> u64 {
        let is_held = |row: &Waiting| row.state == WaitState::Blocked && row.due_at.is_none();
        let held = self
            .waiting
            .iter()
            .filter(|((lane, ..), row)| lanes.contains(lane) && is_held(row));
        let groups: BTreeSet<(Lane, String, Arc<str>)> = held
            .filter_map(|((lane, _, sink, _), row)| Some((*lane, row.content.key.clone()?, sink.clone())))
            .collect();
        let count = |tables: &Self| tables.waiting.values().filter(|row| is_held(row)).count();
        let before = count(self);
        for (lane, key, sink) in groups {
            if !self.has_turn(lane, &key, &sink) {
                self.follow_on_sink(lane, &key, &sink, now);
            }
        }
        (before - count(self)) as u64
    }

    /// Whether a row of this key and delivery has a due time, so that the others rightly wait for it.
    fn has_turn(&self, lane: Lane, key: &str, sink: &str) -> bool {
        self.waiting_in(lane).any(|((_, _, other, _), row)| {
            **other == *sink && row.state.blocks() && row.due_at.is_some() && row.content.key.as_deref() == Some(key)
        })
    }

    fn has_blocking_dead(&self, lane: Lane, key: &str, same_delivery: impl Fn(&Arc<str>) -> bool) -> bool {
        self.dead_in(lane)
            .filter(|_| !planted!(DeadDoNotBlock))
            .any(|((_, _, sink, _), row)| row.blocks && same_delivery(sink) && row.content.key.as_deref() == Some(key))
    }
}
