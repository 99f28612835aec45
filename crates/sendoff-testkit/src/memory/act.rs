//! What operators change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use sendoff::Pattern;
use sendoff::store::{
    Cleaned, Filter, KeyView, Lane, LaneView, Pausable, PauseView, RetryState, Status, Stored, Windows,
};

use super::clock::{Micros, span, time};
use super::operate::{dead_row, fits, waiting_row};
use super::tables::{LegAt, Tables, UNROUTED, WaitState, Waiting};

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

    pub(super) fn hasten(&mut self, filter: &Filter, reset: bool, limit: usize, now: Micros) -> u64 {
        let fitting = self.waiting.iter_mut().filter(|(at, row)| {
            let late = row.due_at.is_some_and(|due| due > now);
            let tried = reset && (row.attempts > 0 || row.last_error.is_some());
            row.state != WaitState::Held && (late || tried) && fits(&waiting_row(at, row), filter)
        });
        let mut hastened = 0;
        for (_, row) in fitting.take(limit) {
            row.due_at = row.due_at.map(|due| due.min(now));
            if reset {
                row.attempts = 0;
                row.last_error = None;
            }
            hastened += 1;
        }
        hastened
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
        let blocking = self.dead.iter_mut().filter(|((_, _, of), row)| {
            row.blocks && row.content.key.as_deref() == Some(key) && leg.is_none_or(|leg| **of == *leg)
        });
        let (mut keys, mut released) = (BTreeSet::new(), 0);
        for ((lane, _, leg), row) in blocking {
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
        for ((lane, _, leg), row) in &self.waiting {
            if let (Some(key), WaitState::Held, None) = (&row.content.key, row.state, row.due_at) {
                *held.entry((*lane, key.clone(), leg.clone())).or_default() += 1;
            }
        }
        for ((lane, _, leg), row) in self.dead.iter().filter(|(_, row)| row.blocks) {
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
            .find(|((_, _, other), row)| row.blocks && same_leg(other) && row.content.key.as_deref() == Some(key));
        let waiting = || {
            self.waiting_in(lane).find(|((_, _, other), row)| {
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
            relay: row.owner.and_then(|owner| self.relay_names.get(&owner).cloned()),
            until: row.owner.and_then(|owner| self.relays.get(&owner)).map(|at| time(*at)),
            crashes: i64::from(row.crashes),
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

    pub(super) fn clean_up(&mut self, windows: &Windows, limit: usize, now: Micros) -> Cleaned {
        let limit = limit as u64;
        let mut cleaned = Cleaned::default();
        // Of what is old, as much as there is room for.
        let mut goes = |old: bool| {
            let goes = old && cleaned.deleted < limit;
            cleaned.deleted += u64::from(goes);
            cleaned.remaining += u64::from(old && !goes);
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
        cleaned
    }
}

fn word(head: &Stored) -> &str {
    match head.status {
        Status::Dead => "dead",
        Status::Pending | Status::Retry | Status::Delivered => head.detail.as_deref().unwrap_or_default(),
    }
}
