//! Room: relay.

use std::time::Duration;

use async_trait::async_trait;
use sendoff::Result;
use sendoff::store::{
    Backlog, BlockedKey, Heartbeat, Lane, LaneGrant, LaneHead, OwnerId, Place, Reader, RelayCard, RelayStore, Room,
    SettleReport, Settlement, Verdict, Vitals, Windows,
};

use super::clock::{Micros, span, time};
use super::settle::Settling;
use super::tables::Tables;
use super::{MemoryReader, MemoryStore, Verb};

impl MemoryStore {
    /// One call: the faults that were ordered for it, and between them the whole change under one lock.
    pub(super) async fn call<T>(&self, verb: Verb, change: impl FnOnce(&mut Tables, Micros) -> T) -> Result<T> {
        self.faults().before(verb).await?;
        let now = self.shared.clock.now();
        let answer = change(&mut self.tables(), now);
        self.faults().after(verb)?;
        Ok(answer)
    }
}

#[async_trait]
impl RelayStore for MemoryStore {
    fn lanes(&self) -> Lane {
        self.shared.lanes.count()
    }

    async fn enlist(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()> {
        self.call(Verb::Enlist, |tables, now| {
            tables.enlist(owner, span(lease), now);
            tables.cards.insert(owner, card.clone());
        })
        .await
    }

    async fn heartbeat(&self, owner: OwnerId, lease: Duration) -> Result<Heartbeat> {
        self.call(Verb::Heartbeat, |tables, now| tables.heartbeat(owner, span(lease), now))
            .await
    }

    async fn acquire(&self, owner: OwnerId, limit: usize) -> Result<Vec<LaneGrant>> {
        self.call(Verb::Acquire, |tables, now| tables.acquire(owner, limit, now))
            .await?
    }

    async fn release(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        self.call(Verb::Release, |tables, _| tables.release(owner, lanes)).await
    }

    async fn retire(&self, owner: OwnerId) -> Result<()> {
        self.call(Verb::Retire, |tables, _| tables.retire(owner)).await
    }

    async fn evict(&self) -> Result<u64> {
        self.call(Verb::Evict, |tables, now| {
            tables.evict(if planted!(HostClock) {
                self.shared.clock.of_host()
            } else {
                now
            })
        })
        .await
    }

    async fn absolve(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        self.call(Verb::Absolve, |tables, _| tables.absolve(owner, lanes)).await
    }

    async fn suspect(&self, owner: OwnerId, lane: Lane, rows: &[Place]) -> Result<()> {
        self.call(Verb::Suspect, |tables, _| tables.suspect(owner, lane, rows))
            .await
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(MemoryReader::new(self.clone()))
    }

    async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>> {
        self.call(Verb::BlockedKeys, |tables, _| tables.blocked_keys(lanes))
            .await
    }

    async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport> {
        let only_delivered = settlements.iter().all(|settlement| {
            let delivered = settlement.legs.iter().all(|leg| leg.verdict == Verdict::Delivered);
            delivered && settlement.place.room == Room::Ready
        });
        let waits = settlements.iter().flat_map(|settlement| &settlement.legs);
        let waits = waits.filter(|leg| matches!(leg.verdict, Verdict::Retry { .. } | Verdict::Hold));
        self.faults().check_waits(waits.count() > 0)?;
        let forgets = only_delivered && self.faults().forgets_settle();
        self.call(Verb::Settle, |tables, now| {
            let before = forgets.then(|| tables.messages());
            let report = Settling {
                tables,
                now,
                keep_delivered: self.shared.keep_delivered,
            }
            .settle(owner, settlements);
            if let Some(before) = before {
                tables.restore(before);
            }
            report
        })
        .await
    }

    async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64> {
        self.call(Verb::ReleaseOrphans, |tables, now| {
            let held: Vec<Lane> = lanes
                .iter()
                .copied()
                .filter(|lane| tables.lanes[usize::from(*lane)].owner == Some(owner))
                .collect();
            tables.release_orphans(&held, now)
        })
        .await
    }

    async fn backlog(&self) -> Result<Backlog> {
        self.call(Verb::Backlog, |tables, now| {
            let is_due = |due: Option<Micros>| due.is_some_and(|due| due <= now);
            let due = tables.waiting.values().filter(|row| is_due(row.due_at)).count();
            Backlog {
                ready: tables.ready.len() as u64,
                due: due as u64,
                waiting: (tables.waiting.len() - due) as u64,
                dead: tables.dead.len() as u64,
            }
        })
        .await
    }

    async fn vitals(&self) -> Result<Option<Vitals>> {
        self.call(Verb::Vitals, |tables, now| {
            let age = |since: Micros| Duration::from_micros(u64::try_from(now - since).unwrap_or_default());
            let mut heads: Vec<LaneHead> = Vec::new();
            for ((lane, seq), content) in &tables.ready {
                if heads.last().is_none_or(|head| head.lane != *lane) {
                    heads.push(LaneHead {
                        lane: *lane,
                        seq: *seq,
                        age: age(content.created_at),
                        held: tables.lanes[usize::from(*lane)]
                            .owner
                            .and_then(|owner| tables.relays.get(&owner))
                            .is_some_and(|lease| lease.is_valid(now)),
                    });
                }
            }
            let due = tables.waiting.values().filter_map(|row| row.due_at).min();
            Some(Vitals {
                now: time(now),
                ready: tables.ready.len() as u64,
                waiting: tables.waiting.len() as u64,
                dead: tables.dead.len() as u64,
                oldest_due: due.filter(|due| *due <= now).map(age),
                heads,
            })
        })
        .await
    }

    async fn paused(&self) -> Result<Vec<(String, String)>> {
        self.call(Verb::Paused, |tables, _| tables.paused.keys().cloned().collect())
            .await
    }

    async fn clean(&self, limit: usize) -> Result<u64> {
        let windows = Windows {
            dead: self.shared.dead_retention,
            dedup: true,
            ..Windows::default()
        };
        self.call(Verb::Clean, |tables, now| tables.clean_up(&windows, limit, now))
            .await
    }
}
