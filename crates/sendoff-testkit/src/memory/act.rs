//! What operators change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use sendoff::Pattern;
use sendoff::store::{
    CleanCount, Filter, Hasten, Hastened, KeyView, Lane, LaneView, Pausable, PauseView, Place, RetryState, Room,
    Status, Stored, Windows,
};

use super::clock::{Micros, span, time};
use super::operate::{dead_row, fits, waiting_row};
use super::tables::{Dead, LegAt, Tables, UNROUTED, WaitState, Waiting};

/// What the relay notes on messages whose topic is paused.
const TOPIC_IS_PAUSED: &str = "the topic is paused";

impl Tables {
    pub(super) fn retry_dead(&mut self, filter: &Filter, until: Option<SystemTime>, limit: usize, now: Micros) -> u64 {
        let chosen = self.fitting_dead(filter, until);
        let free = chosen.into_iter().filter(|at| !self.waiting.contains_key(at));
        let chosen: Vec<LegAt> = free.take(limit).collect();
        for at in &chosen {
            if let Some(mut dead) = self.dead.remove(at) {
                if dead.content.expires_at.is_some_and(|at| at <= now) {
                    Arc::make_mut(&mut dead.content).expires_at = None;
                }
                let row = Waiting {
                    content: dead.content,
                    attempts: 0,
                    state: WaitState::Tried(RetryState::Retry),
                    due_at: Some(now),
                    last_error: dead.last_error,
                    history: dead.history,
                };
                self.waiting.insert(at.clone(), row);
            }
        }
        chosen.len() as u64
    }

    /// The places of waiting rows that an operator can make due.
    pub(super) fn to_hasten(&self, filter: &Filter, how: Hasten, now: Micros) -> impl Iterator<Item = &LegAt> {
        let fitting = self.waiting.iter().filter(move |(at, row)| {
            let is_late = row.due_at.is_some_and(|due| due > now);
            let was_tried = how.reset && (row.attempts > 0 || row.last_error.is_some());
            let is_meant = match row.state {
                WaitState::Held => false,
                WaitState::Scheduled => how.scheduled,
                WaitState::Tried(_) => true,
            };
            is_meant && (is_late || was_tried) && fits(&waiting_row(at, row), filter)
        });
        fitting.map(|(at, _)| at)
    }

    pub(super) fn hasten(
        &mut self,
        filter: &Filter,
        how: Hasten,
        after: Option<&Place>,
        limit: usize,
        now: Micros,
    ) -> Hastened {
        let leg = |place: &Place| place.leg.clone().unwrap_or_else(|| UNROUTED.into());
        let after = after.map(|place| (place.lane, place.seq, leg(place), place.id.uuid()));
        let behind = |at: &&LegAt| after.as_ref().is_none_or(|after| *at > after);
        let chosen: Vec<LegAt> = self
            .to_hasten(filter, how, now)
            .filter(behind)
            .take(limit)
            .cloned()
            .collect();
        for at in &chosen {
            if let Some(row) = self.waiting.get_mut(at) {
                row.due_at = row.due_at.map(|due| due.min(now));
                if how.reset {
                    row.attempts = 0;
                    row.last_error = None;
                }
            }
        }
        let next = chosen.last().filter(|_| chosen.len() == limit);
        Hastened {
            due: chosen.len() as u64,
            next: next.map(|(lane, seq, leg, id)| Place {
                room: Room::Waiting,
                lane: *lane,
                seq: *seq,
                id: (*id).into(),
                leg: Some(leg.clone()).filter(|leg| **leg != *UNROUTED),
                spot: 0,
            }),
        }
    }

    pub(super) fn discard_dead(
        &mut self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        now: Micros,
    ) -> u64 {
        let chosen: Vec<LegAt> = self.fitting_dead(filter, until).into_iter().take(limit).collect();
        let mut keys = BTreeSet::new();
        for at in &chosen {
            if let Some(dead) = self.dead.remove(at).filter(|dead| dead.blocks) {
                keys.extend(dead.content.key.clone().map(|key| (at.0, key, at.2.clone())));
            }
        }
        self.let_go(keys, now);
        chosen.len() as u64
    }

    pub(super) fn release_key(&mut self, key: &str, leg: Option<&str>, now: Micros) -> u64 {
        let blocking = self.dead.iter_mut().filter(|((_, _, of, _), row)| {
            row.blocks && row.content.key.as_deref() == Some(key) && leg.is_none_or(|leg| **of == *leg)
        });
        let (mut keys, mut released) = (BTreeSet::new(), 0);
        for ((lane, _, leg, _), row) in blocking {
            row.blocks = false;
            released += 1;
            keys.insert((*lane, key.to_owned(), leg.clone()));
        }
        self.let_go(keys, now);
        released
    }

    fn let_go(&mut self, keys: BTreeSet<(Lane, String, Arc<str>)>, now: Micros) {
        for (lane, key, leg) in keys {
            self.follow_on(lane, &key, &leg, now);
        }
    }

    fn fitting_dead(&self, filter: &Filter, until: Option<SystemTime>) -> Vec<LegAt> {
        let fitting = self.dead.iter().filter(|(at, row)| {
            let died_by_then = until.is_none_or(|until| time(row.dead_at) <= until);
            died_by_then && fits(&dead_row(at, row), filter)
        });
        fitting.map(|(at, _)| at.clone()).collect()
    }

    pub(super) fn keys(&self, limit: usize) -> Vec<KeyView> {
        let mut held: BTreeMap<(Lane, String, Arc<str>), u64> = BTreeMap::new();
        for ((lane, _, leg, _), row) in &self.waiting {
            if let (Some(key), WaitState::Held, None) = (&row.content.key, row.state, row.due_at) {
                *held.entry((*lane, key.clone(), leg.clone())).or_default() += 1;
            }
        }
        for ((lane, _, leg, _), row) in self.dead.iter().filter(|(_, row)| row.blocks) {
            if let Some(key) = &row.content.key {
                held.entry((*lane, key.clone(), leg.clone())).or_default();
            }
        }
        let view = |((lane, key, leg), held): ((Lane, String, Arc<str>), u64)| {
            let head = self.head(lane, &key, &leg);
            KeyView {
                leg: leg.to_string(),
                lane: i64::from(lane),
                held,
                head: head.as_ref().and_then(|head| head.id),
                state: head.as_ref().map_or("held", word).to_owned(),
                due_at: head.as_ref().and_then(|head| head.due_at),
                last_error: head.and_then(|head| head.last_error),
                key,
            }
        };
        let mut views: Vec<KeyView> = held.into_iter().map(view).collect();
        views.sort_by(|a, b| (b.held, &a.key, &a.leg).cmp(&(a.held, &b.key, &b.leg)));
        views.truncate(limit);
        views
    }

    /// Whom the others of a key wait for: a dead letter, or else the first row that has a time.
    fn head(&self, lane: Lane, key: &str, leg: &str) -> Option<Stored> {
        let same_leg = |other: &Arc<str>| **other == *leg || **other == *UNROUTED;
        let dead = self
            .dead_in(lane)
            .find(|((_, _, other, _), row)| row.blocks && same_leg(other) && row.content.key.as_deref() == Some(key));
        let waiting = || {
            self.waiting_in(lane).find(|((_, _, other, _), row)| {
                row.state.blocks() && row.due_at.is_some() && same_leg(other) && row.content.key.as_deref() == Some(key)
            })
        };
        match dead {
            Some((at, row)) => Some(dead_row(at, row)),
            None => waiting().map(|(at, row)| waiting_row(at, row)),
        }
    }

    pub(super) fn lane_views(&self) -> Vec<LaneView> {
        let view = |(lane, row): (Lane, &super::tables::LaneRow)| LaneView {
            lane: i64::from(lane),
            epoch: row.epoch,
            owner: row.owner.map(|owner| owner.0),
            relay: row
                .owner
                .and_then(|owner| self.cards.get(&owner))
                .map(|card| card.name.clone()),
            until: row
                .owner
                .and_then(|owner| self.relays.get(&owner))
                .map(|lease| time(lease.until)),
            crashes: row.crashed.len() as i64,
            ready: self.ready.keys().filter(|(of, _)| *of == lane).count() as u64,
        };
        (0..).zip(&self.lanes).map(view).collect()
    }

    pub(super) fn pause(&mut self, what: &Pausable, who: &str, now: Micros) -> bool {
        let (kind, name) = what.kind_and_name();
        let at = (kind.to_owned(), name.to_owned());
        if self.paused.contains_key(&at) {
            return false;
        }
        let pause = PauseView {
            what: what.clone(),
            since: time(now),
            by: who.to_owned(),
        };
        self.paused.insert(at, pause);
        true
    }

    pub(super) fn resume(&mut self, what: &Pausable, now: Micros) -> bool {
        let (kind, name) = what.kind_and_name();
        if self.paused.remove(&(kind.to_owned(), name.to_owned())).is_none() {
            return false;
        }
        if let (Pausable::Topic(_), Ok(pattern)) = (what, name.parse::<Pattern>()) {
            let stopped = self.waiting.values_mut().filter(|row| {
                row.state == WaitState::Tried(RetryState::Down)
                    && row.last_error.as_deref() == Some(TOPIC_IS_PAUSED)
                    && pattern.matches(&row.content.topic)
            });
            for row in stopped {
                row.due_at = row.due_at.map(|due| due.min(now));
            }
        }
        true
    }

    pub(super) fn clean_count(&self, windows: &Windows, now: Micros) -> CleanCount {
        let mut count = CleanCount::default();
        let mut add = |is_old: bool| {
            count.old += u64::from(is_old);
            count.all += 1;
        };
        if let Some(window) = windows.delivered {
            self.delivered
                .iter()
                .for_each(|kept| add(kept.delivered_at <= now - span(window)));
        }
        if let Some(window) = windows.dead {
            let is_old = |row: &Dead| !row.blocks && row.dead_at <= now - span(window);
            self.dead.values().for_each(|row| add(is_old(row)));
        }
        if windows.dedup {
            self.dedup.held.values().for_each(|(_, until)| add(*until <= now));
        }
        count
    }

    pub(super) fn clean_up(&mut self, windows: &Windows, limit: usize, now: Micros) -> u64 {
        let (limit, mut deleted) = (limit as u64, 0);
        // Of what is old, as much as there is room for.
        let mut goes = |old: bool| {
            let goes = old && deleted < limit;
            deleted += u64::from(goes);
            goes
        };
        if let Some(window) = windows.delivered {
            self.delivered
                .retain(|kept| !goes(kept.delivered_at <= now - span(window)));
        }
        if let Some(window) = windows.dead {
            self.dead
                .retain(|_, row| !goes(!row.blocks && row.dead_at <= now - span(window)));
        }
        if windows.dedup {
            self.dedup.held.retain(|_, (_, until)| !goes(*until <= now));
        }
        deleted
    }
}

fn word(head: &Stored) -> &str {
    match head.status {
        Status::Dead => "dead",
        Status::Pending | Status::Retry | Status::Delivered => head.detail.as_deref().unwrap_or_default(),
    }
}
