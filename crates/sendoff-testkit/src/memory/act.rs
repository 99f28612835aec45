//! What operators change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use sendoff::Pattern;
use sendoff::store::{
    CleanCount, Filter, KeyView, Lane, LaneView, Pausable, PauseView, Retention, RetriedBatch, RetryOptions,
    RetryState, RowRef, Status, Stored, TOPIC_IS_PAUSED, Table,
};

use super::clock::{Micros, span, time};
use super::operate::{dead_row, waiting_row};
use super::tables::{Dead, DeliveryAt, Tables, UNROUTED, WaitState, Waiting};

impl Tables {
    pub(super) fn retry_dead(&mut self, filter: &Filter, until: Option<SystemTime>, limit: usize, now: Micros) -> u64 {
        let chosen = self.fitting_dead(filter, until);
        let free = chosen.into_iter().filter(|at| !self.waiting.contains_key(at));
        let chosen: Vec<DeliveryAt> = free.take(limit).collect();
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
    pub(super) fn to_retry(
        &self,
        filter: &Filter,
        how: RetryOptions,
        now: Micros,
    ) -> impl Iterator<Item = &DeliveryAt> {
        let fitting = self.waiting.iter().filter(move |(at, row)| {
            let is_late = row.due_at.is_some_and(|due| due > now);
            let was_tried = how.reset && (row.attempts > 0 || row.last_error.is_some());
            let is_meant = match row.state {
                WaitState::Blocked => false,
                WaitState::Scheduled => how.scheduled,
                WaitState::Tried(_) => true,
            };
            is_meant && (is_late || was_tried) && filter.fits(&waiting_row(at, row))
        });
        fitting.map(|(at, _)| at)
    }

    pub(super) fn retry_waiting(
        &mut self,
        filter: &Filter,
        how: RetryOptions,
        after: Option<&RowRef>,
        limit: usize,
        now: Micros,
    ) -> RetriedBatch {
        let sink = |row_ref: &RowRef| row_ref.sink.clone().unwrap_or_else(|| UNROUTED.into());
        let after = after.map(|row_ref| (row_ref.lane, row_ref.seq, sink(row_ref), row_ref.id.uuid()));
        let behind = |at: &&DeliveryAt| after.as_ref().is_none_or(|after| *at > after);
        let chosen: Vec<DeliveryAt> = self
            .to_retry(filter, how, now)
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
        RetriedBatch {
            due: chosen.len() as u64,
            next: next.map(|(lane, seq, sink, id)| RowRef {
                table: Table::Waiting,
                lane: *lane,
                seq: *seq,
                id: (*id).into(),
                sink: Some(sink.clone()).filter(|sink| **sink != *UNROUTED),
                locator: 0,
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
        let chosen: Vec<DeliveryAt> = self.fitting_dead(filter, until).into_iter().take(limit).collect();
        let mut keys = BTreeSet::new();
        for at in &chosen {
            if let Some(dead) = self.dead.remove(at).filter(|dead| dead.blocks) {
                keys.extend(dead.content.key.clone().map(|key| (at.0, key, at.2.clone())));
            }
        }
        self.let_go(keys, now);
        chosen.len() as u64
    }

    pub(super) fn release_key(&mut self, key: &str, sink: Option<&str>, now: Micros) -> u64 {
        let blocking = self.dead.iter_mut().filter(|((_, _, of, _), row)| {
            row.blocks && row.content.key.as_deref() == Some(key) && sink.is_none_or(|sink| **of == *sink)
        });
        let (mut keys, mut released) = (BTreeSet::new(), 0);
        for ((lane, _, sink, _), row) in blocking {
            row.blocks = false;
            released += 1;
            keys.insert((*lane, key.to_owned(), sink.clone()));
        }
        self.let_go(keys, now);
        released
    }

    fn let_go(&mut self, keys: BTreeSet<(Lane, String, Arc<str>)>, now: Micros) {
        for (lane, key, sink) in keys {
            self.follow_on(lane, &key, &sink, now);
        }
    }

    fn fitting_dead(&self, filter: &Filter, until: Option<SystemTime>) -> Vec<DeliveryAt> {
        let fitting = self.dead.iter().filter(|(at, row)| {
            let died_by_then = until.is_none_or(|until| time(row.dead_at) <= until);
            died_by_then && filter.fits(&dead_row(at, row))
        });
        fitting.map(|(at, _)| at.clone()).collect()
    }

    pub(super) fn keys(&self, limit: usize) -> Vec<KeyView> {
        let mut held: BTreeMap<(Lane, String, Arc<str>), u64> = BTreeMap::new();
        for ((lane, _, sink, _), row) in &self.waiting {
            if let (Some(key), WaitState::Blocked, None) = (&row.content.key, row.state, row.due_at) {
                *held.entry((*lane, key.clone(), sink.clone())).or_default() += 1;
            }
        }
        for ((lane, _, sink, _), row) in self.dead.iter().filter(|(_, row)| row.blocks) {
            if let Some(key) = &row.content.key {
                held.entry((*lane, key.clone(), sink.clone())).or_default();
            }
        }
        let view = |((lane, key, sink), held): ((Lane, String, Arc<str>), u64)| {
            let head = self.head(lane, &key, &sink);
            KeyView {
                sink: sink.to_string(),
                lane: i64::from(lane),
                blocked: held,
                head: head.as_ref().and_then(|head| head.id),
                state: head.as_ref().map_or("blocked", word).to_owned(),
                due_at: head.as_ref().and_then(|head| head.due_at),
                last_error: head.and_then(|head| head.last_error),
                key,
            }
        };
        let mut views: Vec<KeyView> = held.into_iter().map(view).collect();
        views.sort_by(|a, b| (b.blocked, &a.key, &a.sink).cmp(&(a.blocked, &b.key, &b.sink)));
        views.truncate(limit);
        views
    }

    /// Whom the others of a key wait for: a dead letter, or else the first row that has a time.
    fn head(&self, lane: Lane, key: &str, sink: &str) -> Option<Stored> {
        let same_delivery = |other: &Arc<str>| **other == *sink || **other == *UNROUTED;
        let dead = self.dead_in(lane).find(|((_, _, other, _), row)| {
            row.blocks && same_delivery(other) && row.content.key.as_deref() == Some(key)
        });
        let waiting = || {
            self.waiting_in(lane).find(|((_, _, other, _), row)| {
                row.state.blocks()
                    && row.due_at.is_some()
                    && same_delivery(other)
                    && row.content.key.as_deref() == Some(key)
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
                row.state == WaitState::Tried(RetryState::Deferred)
                    && row.last_error.as_deref() == Some(TOPIC_IS_PAUSED)
                    && pattern.matches(&row.content.topic)
            });
            for row in stopped {
                row.due_at = row.due_at.map(|due| due.min(now));
            }
        }
        true
    }

    pub(super) fn clean_count(&self, retention: &Retention, now: Micros) -> CleanCount {
        let mut count = CleanCount::default();
        let mut add = |is_old: bool| {
            count.old += u64::from(is_old);
            count.all += 1;
        };
        if let Some(window) = retention.delivered {
            self.delivered
                .iter()
                .for_each(|kept| add(kept.delivered_at <= now - span(window)));
        }
        if let Some(window) = retention.dead {
            let is_old = |row: &Dead| !row.blocks && row.dead_at <= now - span(window);
            self.dead.values().for_each(|row| add(is_old(row)));
        }
        if retention.dedup {
            self.dedup.held.values().for_each(|(_, until)| add(*until <= now));
        }
        count
    }

    pub(super) fn clean_up(&mut self, retention: &Retention, limit: usize, now: Micros) -> u64 {
        let (limit, mut deleted) = (limit as u64, 0);
        // Of what is old, as much as there is room for.
        let mut goes = |old: bool| {
            let goes = old && deleted < limit;
            deleted += u64::from(goes);
            goes
        };
        if let Some(window) = retention.delivered {
            self.delivered
                .retain(|kept| !goes(kept.delivered_at <= now - span(window)));
        }
        if let Some(window) = retention.dead {
            self.dead
                .retain(|_, row| !goes(!row.blocks && row.dead_at <= now - span(window)));
        }
        if retention.dedup {
            self.dedup.held.retain(|_, (_, until)| !goes(*until <= now));
        }
        deleted
    }
}

fn word(head: &Stored) -> &str {
    match head.status {
        Status::Dead => "dead",
        _ => head.detail.as_deref().unwrap_or_default(),
    }
}
