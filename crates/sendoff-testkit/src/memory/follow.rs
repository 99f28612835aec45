//! The order of a key in the waiting table.
//!
//! Among the rows of one lane, key and leg that block, those that have a due time are the first ones by `seq`: a row is
//! never due while one before it still has to wait.

use std::collections::BTreeSet;
use std::sync::Arc;

use sendoff::store::{BlockedKey, Lane};

use super::clock::Micros;
use super::tables::{LegAt, Tables, UNROUTED, WaitState, Waiting};

/// How many followers are let go at a time.
const FOLLOWERS: usize = 64;

impl Tables {
    /// Whether a leg has to wait for others of its key. A row that is not routed yet may go to any leg.
    pub(super) fn is_held(&self, (lane, seq, leg, _): &LegAt, key: &str) -> bool {
        let same_leg = |other: &Arc<str>| other == leg || **other == *UNROUTED;
        self.waiting_in(*lane).any(|((_, other, other_leg, _), row)| {
            // One that is held behind it waits for this one.
            let is_before = other < seq || row.state != WaitState::Held;
            other != seq
                && is_before
                && same_leg(other_leg)
                && row.state.blocks()
                && row.content.key.as_deref() == Some(key)
        }) || self.has_blocking_dead(*lane, key, same_leg)
    }

    /// Lets the next rows of a key go. Returns whether there were any. When a row left that was not routed, it may have
    /// held rows of any leg.
    pub(super) fn follow_on(&mut self, lane: Lane, key: &str, leg: &str, now: Micros) -> bool {
        if leg != UNROUTED {
            return self.follow_on_leg(lane, key, leg, now);
        }
        let of_key = self
            .waiting_in(lane)
            .filter(|(_, row)| row.content.key.as_deref() == Some(key));
        let legs: BTreeSet<Arc<str>> = of_key.map(|((_, _, leg, _), _)| leg.clone()).collect();
        // All of them: `any` would stop at the first leg that has followers.
        legs.iter()
            .filter(|leg| self.follow_on_leg(lane, key, leg, now))
            .count()
            > 0
    }

    fn follow_on_leg(&mut self, lane: Lane, key: &str, leg: &str, now: Micros) -> bool {
        let same_leg = |other: &Arc<str>| **other == *leg || **other == *UNROUTED;
        if planted!(HeldForEver) || self.has_blocking_dead(lane, key, same_leg) {
            return false;
        }
        let rows = self.waiting_in_mut(lane).filter(|((_, _, other, _), row)| {
            same_leg(other) && row.state.blocks() && row.content.key.as_deref() == Some(key)
        });
        let mut let_go = 0;
        for ((_, _, other, _), row) in rows {
            match row.due_at {
                // Its turn comes first, and it has not come yet.
                Some(due) if due > now => break,
                // Where it will go is not known, so nothing of any leg may pass it.
                _ if **other != *leg => break,
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
    pub(super) fn hold_back(&mut self, lane: Lane, key: &str, leg: &str, seq: i64) {
        for ((_, other, other_leg, _), row) in self.waiting_in_mut(lane) {
            let behind =
                *other > seq && (**other_leg == *leg || leg == UNROUTED) && row.content.key.as_deref() == Some(key);
            if behind && row.state.blocks() && row.due_at.is_some() {
                row.state = WaitState::Held;
                row.due_at = None;
            }
        }
    }

    /// Whether anything of a key still waits or blocks.
    pub(super) fn key_left(&self, blocked: &BlockedKey) -> bool {
        let same_leg = |leg: &Arc<str>| *leg == blocked.leg;
        self.waiting_in(blocked.lane).any(|((_, _, leg, _), row)| {
            same_leg(leg) && row.state.blocks() && row.content.key.as_deref() == Some(&*blocked.key)
        }) || self.has_blocking_dead(blocked.lane, &blocked.key, same_leg)
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
        let blocked = waiting.chain(dead).filter_map(|((lane, _, leg, _), content)| {
            lanes.contains(lane).then_some(BlockedKey {
                lane: *lane,
                key: content.key.as_deref()?.into(),
                leg: leg.clone(),
            })
        });
        // Sorted and without repetitions.
        blocked.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Lets go of held rows in these lanes that nothing holds any more. Returns how many.
    pub(super) fn release_orphans(&mut self, lanes: &[Lane], now: Micros) -> u64 {
        let is_held = |row: &Waiting| row.state == WaitState::Held && row.due_at.is_none();
        let held = self
            .waiting
            .iter()
            .filter(|((lane, ..), row)| lanes.contains(lane) && is_held(row));
        let groups: BTreeSet<(Lane, String, Arc<str>)> = held
            .filter_map(|((lane, _, leg, _), row)| Some((*lane, row.content.key.clone()?, leg.clone())))
            .collect();
        let count = |tables: &Self| tables.waiting.values().filter(|row| is_held(row)).count();
        let before = count(self);
        for (lane, key, leg) in groups {
            if !self.has_turn(lane, &key, &leg) {
                self.follow_on_leg(lane, &key, &leg, now);
            }
        }
        (before - count(self)) as u64
    }

    /// Whether a row of this key and leg has a due time, so that the others rightly wait for it.
    fn has_turn(&self, lane: Lane, key: &str, leg: &str) -> bool {
        self.waiting_in(lane).any(|((_, _, other, _), row)| {
            **other == *leg && row.state.blocks() && row.due_at.is_some() && row.content.key.as_deref() == Some(key)
        })
    }

    fn has_blocking_dead(&self, lane: Lane, key: &str, same_leg: impl Fn(&Arc<str>) -> bool) -> bool {
        self.dead_in(lane)
            .filter(|_| !planted!(DeadDoNotBlock))
            .any(|((_, _, leg, _), row)| row.blocks && same_leg(leg) && row.content.key.as_deref() == Some(key))
    }
}
