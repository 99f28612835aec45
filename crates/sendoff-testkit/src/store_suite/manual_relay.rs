//! A relay that is driven by hand, one call at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sendoff::Result;
use sendoff::store::{
    DeadReason, DeliverySettlement, Lane, LaneGrant, Outgoing, OwnerId, Page, ReadRequest, Reader, RelayCard,
    RelayStore, RetryState, Row, RowRef, SettleReport, Settlement, Verdict,
};
use tokio::time::{Instant, sleep};

use super::scene::PATIENCE;

pub(super) struct ManualRelay {
    pub(super) store: Arc<dyn RelayStore>,
    pub(super) owner: OwnerId,
    pub(super) epochs: BTreeMap<Lane, i64>,
    pub(super) reader: Box<dyn Reader>,
    pub(super) settled: Vec<RowRef>,
    pub(super) forgotten: Vec<RowRef>,
    pub(super) skip_sinks: Vec<String>,
    /// How many bytes a read may return.
    pub(super) bytes: usize,
}

impl ManualRelay {
    pub(super) async fn register(store: Arc<dyn RelayStore>, lease: Duration) -> Result<Self> {
        let owner = OwnerId::random();
        store.register(owner, &RelayCard::named("by hand"), lease).await?;
        Ok(Self {
            owner,
            epochs: BTreeMap::new(),
            reader: store.reader(),
            settled: Vec::new(),
            forgotten: Vec::new(),
            skip_sinks: Vec::new(),
            bytes: usize::MAX,
            store,
        })
    }

    /// Leases lanes and reads them from now on.
    pub(super) async fn acquire(&mut self, limit: usize) -> Result<Vec<LaneGrant>> {
        let grants = self.store.acquire(self.owner, limit).await?;
        self.epochs.extend(grants.iter().map(|grant| (grant.lane, grant.epoch)));
        self.reader.gained(&grants);
        Ok(grants)
    }

    pub(super) async fn release(&mut self, lanes: &[Lane]) -> Result<()> {
        self.store.release(self.owner, lanes).await?;
        self.reader.lost(lanes);
        self.epochs.retain(|lane, _| !lanes.contains(lane));
        Ok(())
    }

    pub(super) fn lanes(&self) -> Vec<Lane> {
        self.epochs.keys().copied().collect()
    }

    /// Lets the lease run out, and waits until it has: `witness` sees it no more.
    pub(super) async fn vanish(&self, witness: &Self) -> Result<()> {
        self.store.heartbeat(self.owner, Duration::from_millis(1)).await?;
        let began = Instant::now();
        loop {
            let beat = witness.store.heartbeat(witness.owner, super::scene::LONG_LEASE).await?;
            if !beat.owners().contains(&self.owner) {
                return Ok(());
            }
            assert!(began.elapsed() < PATIENCE, "a lease of 1 ms does not run out");
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// These rows are gone: somebody else has settled them.
    pub(super) fn note_settled(&mut self, row_refs: Vec<RowRef>) {
        self.settled.extend(row_refs);
    }

    /// One read of both tables.
    pub(super) async fn read(&mut self, limit: usize) -> Result<Page> {
        self.read_tables(limit, true, true).await
    }

    pub(super) async fn read_tables(&mut self, limit: usize, ready: bool, due: bool) -> Result<Page> {
        let request = ReadRequest {
            limit,
            bytes: self.bytes,
            settled: std::mem::take(&mut self.settled),
            forgotten: std::mem::take(&mut self.forgotten),
            skip_sinks: self.skip_sinks.clone(),
            due,
            ready,
        };
        self.reader.read(request).await
    }

    /// Reads until there were so many rows; fails when there are more or fewer.
    pub(super) async fn read_rows(&mut self, count: usize) -> Vec<Row> {
        let (mut rows, began) = (Vec::new(), Instant::now());
        while rows.len() < count {
            let page = self.read(1000).await.expect("a read");
            if page.rows.is_empty() {
                assert!(began.elapsed() < PATIENCE, "read {} of {count} rows", rows.len());
                sleep(Duration::from_millis(2)).await;
            }
            rows.extend(page.rows);
        }
        assert_eq!(rows.len(), count, "more rows than there should be: {rows:#?}");
        rows
    }

    /// Reads until there were so many messages; fails when something else comes.
    pub(super) async fn read_messages(&mut self, count: usize) -> Vec<Outgoing> {
        self.read_rows(count).await.into_iter().map(message).collect()
    }

    /// Fails unless nothing is to be read. Looks for longer than a reader may lag.
    pub(super) async fn read_nothing(&mut self) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(300) {
            let page = self.read(1000).await.expect("a read");
            assert!(
                page.rows.is_empty(),
                "there should be nothing to read: {:#?}",
                page.rows
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) fn settlement(&self, outgoing: &Outgoing, deliveries: Vec<DeliverySettlement>) -> Settlement {
        Settlement {
            row_ref: outgoing.row_ref.clone(),
            epoch: self.epochs.get(&outgoing.row_ref.lane).copied().unwrap_or_default(),
            deliveries,
            key: outgoing.key.as_deref().map(Arc::from),
            attempts: outgoing.attempts,
        }
    }

    pub(super) async fn settle(&mut self, settlements: &[Settlement]) -> Result<SettleReport> {
        let report = self.store.settle(self.owner, settlements).await?;
        let settled = settlements
            .iter()
            .filter(|settlement| !report.lost.contains(&settlement.row_ref.lane));
        self.settled
            .extend(settled.map(|settlement| settlement.row_ref.clone()));
        Ok(report)
    }

    /// Settles messages with one verdict for the delivery `sink`, or for the one that a message names.
    pub(super) async fn settle_as(&mut self, verdict: &Verdict, outgoing: &[Outgoing]) -> Result<SettleReport> {
        let settlements: Vec<Settlement> = outgoing
            .iter()
            .map(|outgoing| {
                let name = outgoing.row_ref.sink.as_deref().unwrap_or("sink");
                self.settlement(outgoing, vec![sink(name, verdict.clone())])
            })
            .collect();
        let report = self.settle(&settlements).await?;
        assert_eq!(report.lost, Vec::<Lane>::new());
        Ok(report)
    }

    /// Settles messages as delivered.
    pub(super) async fn deliver(&mut self, outgoing: &[Outgoing]) -> Result<SettleReport> {
        let settlements: Vec<Settlement> = outgoing.iter().map(|d| self.settlement(d, Vec::new())).collect();
        let report = self.settle(&settlements).await?;
        assert_eq!(report.lost, Vec::<Lane>::new());
        Ok(report)
    }
}

pub(super) fn message(row: Row) -> Outgoing {
    match row {
        Row::Message(outgoing) => Arc::unwrap_or_clone(outgoing),
        other => panic!("this should be a message: {other:#?}"),
    }
}

pub(super) fn sink(name: &str, verdict: Verdict) -> DeliverySettlement {
    DeliverySettlement {
        sink: name.into(),
        verdict,
    }
}

/// To be tried again, charged.
pub(super) fn retry(delay: Duration) -> Verdict {
    waiting(RetryState::Retry, delay)
}

pub(super) fn waiting(state: RetryState, delay: Duration) -> Verdict {
    Verdict::Retry {
        state,
        delay,
        charged: true,
        error: "it failed".into(),
    }
}

pub(super) fn dead(reason: DeadReason, blocks: bool) -> Verdict {
    Verdict::Dead {
        reason,
        error: "it is hopeless".into(),
        charged: true,
        blocks,
    }
}
