//! The store at a glance, and the figures that relays write for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sendoff::store::{Figures, Group, LaneHead, Overview, OwnerId, RelayStatus, Status, StoreHealth};

use super::clock::{Micros, time};
use super::operate::waiting_row;
use super::tables::Tables;

impl Tables {
    pub(super) fn write_figures(&mut self, owner: OwnerId, figures: &Figures, now: Micros) {
        if self.relays.contains_key(&owner) {
            let rows = figures.rows().into_iter().map(|(sink, text)| (sink, (now, text)));
            self.figures.entry(owner).or_default().extend(rows);
        }
    }

    pub(super) fn health(&self, now: Micros) -> StoreHealth {
        let age = |since: Micros| Duration::from_micros(u64::try_from(now - since).unwrap_or_default());
        let mut heads: Vec<LaneHead> = Vec::new();
        for ((lane, seq), content) in &self.ready {
            if heads.last().is_none_or(|head| head.lane != *lane) {
                heads.push(LaneHead {
                    lane: *lane,
                    seq: *seq,
                    age: age(content.created_at),
                    held: self.lanes[usize::from(*lane)]
                        .owner
                        .is_some_and(|owner| self.has_lease(owner, now)),
                });
            }
        }
        let due = self.waiting.values().filter_map(|row| row.due_at).min();
        StoreHealth {
            now: time(now),
            ready: self.ready.len() as u64,
            waiting: self.waiting.len() as u64,
            dead: self.dead.len() as u64,
            oldest_due: due.filter(|due| *due <= now).map(age),
            heads,
            stray: None,
        }
    }

    pub(super) fn overview(&self, now: Micros) -> Overview {
        let mut ready = Groups::default();
        for content in self.ready.values() {
            ready.add(&content.topic, "", Status::Pending, now - content.created_at);
        }
        let mut waiting = Groups::default();
        for (at, row) in &self.waiting {
            let status = match waiting_row(at, row).status {
                Status::Scheduled if row.due_at.is_some_and(|due| due <= now) => Status::Pending,
                status => status,
            };
            let since = row.content.available_at.unwrap_or(row.content.created_at);
            let age = now - since.max(row.content.created_at);
            waiting.add(&row.content.topic, &at.2, status, age);
        }
        let mut dead: BTreeMap<String, u64> = BTreeMap::new();
        for row in self.dead.values() {
            *dead.entry(row.reason.as_str().to_owned()).or_default() += 1;
        }
        let is_held = |owner: Option<OwnerId>| owner.is_some_and(|owner| self.has_lease(owner, now));
        let free = (0..).zip(&self.lanes).filter(|(_, lane)| !is_held(lane.owner));
        Overview {
            relays: self.relay_statuses(now),
            lanes: self.lanes.len() as u64,
            free_lanes: free.map(|(lane, _)| lane).collect(),
            ready: ready.listed(),
            waiting: waiting.listed(),
            dead: dead.into_iter().collect(),
            blocked_keys: self.blocked_key_count(),
            pauses: self.paused.values().cloned().collect(),
            jobs: None,
            health: self.health(now),
        }
    }

    fn relay_statuses(&self, now: Micros) -> Vec<RelayStatus> {
        let status = |(owner, lease): (&OwnerId, &super::tables::Lease)| {
            let card = self.cards.get(owner).cloned().unwrap_or_default();
            let mut relay = RelayStatus {
                owner: *owner,
                name: card.name,
                version: card.version,
                config: card.config,
                routes: card.routes,
                beat_at: time(lease.until - lease.length),
                alive: lease.is_valid(now),
                lanes: self.lanes.iter().filter(|lane| lane.owner == Some(*owner)).count() as u64,
                figures: None,
                sinks: Vec::new(),
            };
            for (sink, (at, text)) in self.figures.get(owner).into_iter().flatten() {
                relay.add_figures(sink.clone(), time(*at), text);
            }
            relay
        };
        let mut relays: Vec<RelayStatus> = self.relays.iter().map(status).collect();
        relays.sort_by(|a, b| (&a.name, a.owner).cmp(&(&b.name, b.owner)));
        relays
    }

    fn blocked_key_count(&self) -> u64 {
        let waiting = self.waiting.iter().filter_map(|((lane, _, sink, _), row)| {
            let is_blocked = row.state == super::tables::WaitState::Blocked && row.due_at.is_none();
            let key = row.content.key.as_deref().filter(|_| is_blocked)?;
            Some((*lane, key, &**sink))
        });
        let dead = self.dead.iter().filter_map(|((lane, _, sink, _), row)| {
            let key = row.content.key.as_deref().filter(|_| row.blocks)?;
            Some((*lane, key, &**sink))
        });
        waiting.chain(dead).collect::<BTreeSet<_>>().len() as u64
    }
}

/// Rows by topic, sink and name of the status: how many, and the age of the oldest.
#[derive(Default)]
struct Groups(BTreeMap<(String, String, &'static str), (Status, u64, Micros)>);

impl Groups {
    fn add(&mut self, topic: &str, sink: &str, status: Status, age: Micros) {
        let key = (topic.to_owned(), sink.to_owned(), status.as_str());
        let (_, count, oldest) = self.0.entry(key).or_insert((status, 0, age));
        *count += 1;
        *oldest = age.max(*oldest);
    }

    fn listed(self) -> Vec<Group> {
        let group =
            |((topic, sink, _), (status, count, oldest)): ((String, String, &str), (Status, u64, Micros))| Group {
                topic,
                sink,
                status,
                count,
                oldest: Duration::from_micros(u64::try_from(oldest).unwrap_or_default()),
            };
        self.0.into_iter().map(group).collect()
    }
}
