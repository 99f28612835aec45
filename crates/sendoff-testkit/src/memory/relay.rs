//! Part: relay.

use std::time::Duration;

use async_trait::async_trait;
use sendoff::Result;
use sendoff::store::{
    Backlog, BlockedKey, Figures, Heartbeat, Lane, LaneGrant, OwnerId, Reader, RelayCard, RelayStore, Retention,
    RowRef, SettleReport, Settlement, StoreHealth, Table, Verdict,
};

use super::clock::{Micros, span};
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

    async fn register(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()> {
        self.call(Verb::Register, |tables, now| {
            tables.register(owner, span(lease), now);
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

    async fn deregister(&self, owner: OwnerId) -> Result<()> {
        self.call(Verb::Deregister, |tables, _| tables.deregister(owner)).await
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

    async fn clear_quarantine(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        self.call(Verb::ClearQuarantine, |tables, _| tables.clear_quarantine(owner, lanes))
            .await
    }

    async fn quarantine(&self, owner: OwnerId, lane: Lane, rows: &[RowRef]) -> Result<()> {
        self.call(Verb::Quarantined, |tables, _| tables.quarantine(owner, lane, rows))
            .await
    }

    fn keeps_delivered(&self) -> bool {
        self.shared.keep_delivered
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
            let delivered = settlement
                .deliveries
                .iter()
                .all(|sink| sink.verdict == Verdict::Delivered);
            delivered && settlement.row_ref.table == Table::Ready
        });
        let waits = settlements.iter().flat_map(|settlement| &settlement.deliveries);
        let waits = waits.filter(|sink| {
            matches!(
                sink.verdict,
                Verdict::Retry { .. } | Verdict::Paused { .. } | Verdict::Blocked
            )
        });
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

    async fn health(&self) -> Result<Option<StoreHealth>> {
        self.call(Verb::StoreHealth, |tables, now| Some(tables.health(now)))
            .await
    }

    async fn write_figures(&self, owner: OwnerId, figures: &Figures) -> Result<()> {
        self.call(Verb::Figures, |tables, now| tables.write_figures(owner, figures, now))
            .await
    }

    async fn paused(&self) -> Result<Vec<(String, String)>> {
        self.call(Verb::Paused, |tables, _| tables.paused.keys().cloned().collect())
            .await
    }

    async fn clean(&self, limit: usize) -> Result<u64> {
        let retention = Retention {
            dead: self.shared.dead_retention,
            dedup: true,
            ..Retention::default()
        };
        self.call(Verb::Clean, |tables, now| tables.clean_up(&retention, limit, now))
            .await
    }
}
