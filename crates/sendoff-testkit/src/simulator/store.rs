//! The store as a process sees it, at the other end of a wire.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::Result;
use sendoff::store::{
    Backlog, BlockedKey, Figures, Heartbeat, Lane, LaneGrant, OwnerId, Page, ReadRequest, Reader, RelayCard,
    RelayStore, Row, RowRef, SettleReport, Settlement,
};
use tokio::time::{Instant, sleep};

use super::message::Temper;
use super::process::Seat;
use super::world::World;
use crate::Verb;

/// The store, far away.
pub(super) struct Far {
    world: Arc<World>,
    seat: Seat,
}

impl Far {
    pub(super) fn new(world: Arc<World>, seat: Seat) -> Self {
        Self { world, seat }
    }
}

#[async_trait]
impl RelayStore for Far {
    fn lanes(&self) -> Lane {
        self.world.store.lanes()
    }

    async fn register(&self, owner: OwnerId, card: &RelayCard, lease: Duration) -> Result<()> {
        let (sent, card) = (Instant::now(), card.clone());
        let work = move |store: crate::MemoryStore| async move { store.register(owner, &card, lease).await };
        self.world.carry(self.seat, "register", work).await?;
        self.world.leased(self.seat, sent + lease);
        Ok(())
    }

    async fn heartbeat(&self, owner: OwnerId, lease: Duration) -> Result<Heartbeat> {
        let sent = Instant::now();
        let work = move |store: crate::MemoryStore| async move { store.heartbeat(owner, lease).await };
        let beat = self.world.carry(self.seat, "heartbeat", work).await?;
        if beat.alive {
            self.world.leased(self.seat, sent + lease);
            self.world.sees(self.seat, &beat.owners());
        } else {
            self.world.log(|| format!("{} has lost its lease", self.seat));
        }
        Ok(beat)
    }

    async fn acquire(&self, owner: OwnerId, limit: usize) -> Result<Vec<LaneGrant>> {
        let work = move |store: crate::MemoryStore| async move { store.acquire(owner, limit).await };
        let grants = self.world.carry(self.seat, "acquire", work).await?;
        self.world.log(|| {
            let lanes: Vec<(Lane, i64)> = grants.iter().map(|grant| (grant.lane, grant.epoch)).collect();
            format!("{} acquires {lanes:?}", self.seat)
        });
        Ok(grants)
    }

    async fn release(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        let lanes = lanes.to_vec();
        self.world.log(|| format!("{} releases {lanes:?}", self.seat));
        let work = move |store: crate::MemoryStore| async move { store.release(owner, &lanes).await };
        self.world.carry(self.seat, "release", work).await
    }

    async fn deregister(&self, owner: OwnerId) -> Result<()> {
        self.world.log(|| format!("{} deregisters {owner}", self.seat));
        let work = move |store: crate::MemoryStore| async move { store.deregister(owner).await };
        self.world.carry(self.seat, "deregister", work).await
    }

    async fn evict(&self) -> Result<u64> {
        let world = self.world.clone();
        let work = move |store: crate::MemoryStore| async move {
            let leased = world.leased_owners();
            let freed = store.evict().await;
            world.are_registered(&leased);
            freed
        };
        let freed = self.world.carry(self.seat, "evict", work).await?;
        if freed > 0 {
            self.world
                .log(|| format!("{} evicts: {freed} lanes are free", self.seat));
        }
        Ok(freed)
    }

    async fn clear_quarantine(&self, owner: OwnerId, lanes: &[Lane]) -> Result<()> {
        let lanes = lanes.to_vec();
        self.world.log(|| format!("{} clears {lanes:?}", self.seat));
        let work = move |store: crate::MemoryStore| async move { store.clear_quarantine(owner, &lanes).await };
        self.world.carry(self.seat, "clear_quarantine", work).await
    }

    async fn quarantine(&self, owner: OwnerId, lane: Lane, rows: &[RowRef]) -> Result<()> {
        let rows = rows.to_vec();
        self.world.log(|| {
            let names = rows.iter().map(|row| self.world.name_of(row.id.uuid()));
            let names: Vec<String> = names.collect();
            format!(
                "{} quarantined messages [{}] of lane {lane}",
                self.seat,
                names.join(", ")
            )
        });
        let work = move |store: crate::MemoryStore| async move { store.quarantine(owner, lane, &rows).await };
        self.world.carry(self.seat, "quarantined", work).await
    }

    fn keeps_delivered(&self) -> bool {
        self.world.store.keeps_delivered()
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(FarReader {
            world: self.world.clone(),
            seat: self.seat,
            inner: self.world.store.reader(),
        })
    }

    async fn blocked_keys(&self, lanes: &[Lane]) -> Result<Vec<BlockedKey>> {
        let lanes = lanes.to_vec();
        let work = move |store: crate::MemoryStore| async move { store.blocked_keys(&lanes).await };
        self.world.carry(self.seat, "blocked_keys", work).await
    }

    async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport> {
        let (world, seat, settlements) = (self.world.clone(), self.seat, settlements.to_vec());
        let work = move |store: crate::MemoryStore| async move {
            let before = world.before_settling(owner, &settlements);
            let report = store.settle(owner, &settlements).await?;
            world.settled(seat, &settlements, &before, &report);
            Ok(report)
        };
        self.world.carry(self.seat, "settle", work).await
    }

    async fn release_orphans(&self, owner: OwnerId, lanes: &[Lane]) -> Result<u64> {
        let lanes = lanes.to_vec();
        let work = move |store: crate::MemoryStore| async move { store.release_orphans(owner, &lanes).await };
        self.world.carry(self.seat, "release_orphans", work).await
    }

    async fn backlog(&self) -> Result<Backlog> {
        self.world.store.backlog().await
    }

    async fn paused(&self) -> Result<Vec<(String, String)>> {
        let work = move |store: crate::MemoryStore| async move { store.paused().await };
        let paused = self.world.carry(self.seat, "paused", work).await?;
        self.world.knows_paused(self.seat, &paused);
        Ok(paused)
    }

    async fn write_figures(&self, owner: OwnerId, figures: &Figures) -> Result<()> {
        let figures = figures.clone();
        let work = move |store: crate::MemoryStore| async move { store.write_figures(owner, &figures).await };
        self.world.carry(self.seat, "figures", work).await
    }

    async fn clean(&self, limit: usize) -> Result<u64> {
        let work = move |store: crate::MemoryStore| async move { store.clean(limit).await };
        self.world.carry(self.seat, "clean", work).await
    }
}

struct FarReader {
    world: Arc<World>,
    seat: Seat,
    inner: Box<dyn Reader>,
}

#[async_trait]
impl Reader for FarReader {
    fn gained(&mut self, grants: &[LaneGrant]) {
        self.inner.gained(grants);
    }

    fn lost(&mut self, lanes: &[Lane]) {
        self.inner.lost(lanes);
    }

    /// A read is no message on a wire: what was asked for is noted at once, as by a reader in the process, and an answer
    /// that does not come has read nothing.
    async fn read(&mut self, request: ReadRequest) -> Result<Page> {
        self.world.gate(self.seat).await;
        let fate = self.world.call_fate(self.seat);
        if !fate.there.is_zero() {
            sleep(fate.there).await;
        }
        if fate.refused || fate.lost || fate.silent {
            // Nothing else can come between: there is no await.
            self.world.store.faults().fail(Verb::Read, 1);
        }
        let mut page = self.inner.read(request).await;
        if fate.silent {
            std::future::pending::<()>().await;
        }
        if let Ok(page) = &mut page {
            self.garble(page);
        }
        if !fate.back.is_zero() {
            sleep(fate.back).await;
        }
        self.world.gate(self.seat).await;
        page
    }
}

impl FarReader {
    fn garble(&self, page: &mut Page) {
        let state = self.world.state();
        for row in &mut page.rows {
            let (Row::Message(outgoing) | Row::Expired(outgoing)) = &*row else {
                continue;
            };
            let note = state.ledger.find(outgoing.id).map(|n| &state.ledger.notes[n]);
            if !state.healed && note.is_some_and(|note| note.draft.temper == Temper::Garbled) {
                *row = Row::Unreadable {
                    row_ref: outgoing.row_ref.clone(),
                    why: "the simulation garbled it".to_owned(),
                };
            }
        }
        drop(state);
        if !page.rows.is_empty() {
            self.world.log(|| {
                let name = |row: &Row| {
                    let row_ref = row.row_ref();
                    format!("{}@{:?}", self.world.name_of(row_ref.id.uuid()), row_ref.table)
                };
                let rows: Vec<String> = page.rows.iter().map(name).collect();
                format!("{} reads {}", self.seat, rows.join(", "))
            });
        }
    }
}
