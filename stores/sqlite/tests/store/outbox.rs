//! An outbox in a file of its own, with a relay that holds all lanes.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use sendoff::Message;
use sendoff::store::{
    DeadReason, DeliverySettlement, EmitStore, Lane, LaneGrant, MigrateStore, Outgoing, OwnerId, Page, ReadRequest,
    Reader, RelayCard, RelayStore, RetryState, Row, RowRef, SettleReport, Settlement, Verdict,
};
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};

pub(crate) const LEASE: Duration = Duration::from_secs(60);

pub(crate) struct TestOutbox {
    pub(crate) store: SqliteStore,
    folder: tempfile::TempDir,
}

impl TestOutbox {
    pub(crate) async fn new() -> Self {
        Self::with(|config| config).await
    }

    pub(crate) async fn with(change: impl FnOnce(SqliteConfig) -> SqliteConfig) -> Self {
        let outbox = Self::unmigrated(change);
        outbox.store.migrate().await.unwrap();
        outbox
    }

    pub(crate) fn unmigrated(change: impl FnOnce(SqliteConfig) -> SqliteConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = change(SqliteConfig::new(folder.path().join("outbox.db")));
        let store = SqliteStore::new(config).unwrap();
        Self { store, folder }
    }

    /// A second store over the same file, as another process has it.
    pub(crate) fn another(&self) -> SqliteStore {
        SqliteStore::new(self.store.config().clone()).unwrap()
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("outbox.db")
    }

    /// A connection of a program that knows nothing of Sendoff.
    pub(crate) fn plain(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection
    }

    pub(crate) fn run(&self, sql: &str) {
        self.plain().execute_batch(sql).unwrap();
    }

    pub(crate) fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        self.plain().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub(crate) async fn emit(&self, messages: &[Message]) {
        let mut transaction = self.store.begin().await.unwrap();
        transaction.emit(messages).await.unwrap();
        transaction.commit().await.unwrap();
    }

    pub(crate) async fn relay(&self) -> TestRelay {
        TestRelay::start(&self.store).await
    }
}

/// What a relay does, by hand.
pub(crate) struct TestRelay {
    pub(crate) store: SqliteStore,
    pub(crate) owner: OwnerId,
    pub(crate) grants: Vec<LaneGrant>,
    pub(crate) reader: Box<dyn Reader>,
    settled: Vec<RowRef>,
}

impl TestRelay {
    pub(crate) async fn start(store: &SqliteStore) -> Self {
        let owner = OwnerId::random();
        store.register(owner, &RelayCard::named("test"), LEASE).await.unwrap();
        let grants = store.acquire(owner, 80).await.unwrap();
        let mut reader = store.reader();
        reader.gained(&grants);
        Self {
            store: store.clone(),
            owner,
            grants,
            reader,
            settled: Vec::new(),
        }
    }

    pub(crate) fn epoch(&self, lane: Lane) -> i64 {
        self.grants.iter().find(|grant| grant.lane == lane).unwrap().epoch
    }

    pub(crate) async fn page(&mut self, limit: usize) -> Page {
        let request = ReadRequest {
            limit,
            due: true,
            ready: true,
            settled: std::mem::take(&mut self.settled),
            ..ReadRequest::default()
        };
        self.reader.read(request).await.unwrap()
    }

    pub(crate) async fn read(&mut self) -> Vec<Row> {
        self.page(1000).await.rows
    }

    pub(crate) async fn outgoing(&mut self) -> Vec<Outgoing> {
        self.read().await.into_iter().map(outgoing).collect()
    }

    /// The payloads of what is read next, as text.
    pub(crate) async fn payloads(&mut self) -> Vec<String> {
        let payload = |outgoing: Outgoing| String::from_utf8(outgoing.payload.to_vec()).unwrap();
        self.outgoing().await.into_iter().map(payload).collect()
    }

    pub(crate) fn settlement(&self, outgoing: &Outgoing, deliveries: &[(&str, Verdict)]) -> Settlement {
        Settlement {
            attempts: outgoing.attempts,
            ..self.settlement_of(&outgoing.row_ref, outgoing.key.as_deref(), deliveries)
        }
    }

    pub(crate) fn settlement_of(
        &self,
        row_ref: &RowRef,
        key: Option<&str>,
        deliveries: &[(&str, Verdict)],
    ) -> Settlement {
        let sink = |(sink, verdict): &(&str, Verdict)| DeliverySettlement {
            sink: (*sink).into(),
            verdict: verdict.clone(),
        };
        Settlement {
            row_ref: row_ref.clone(),
            epoch: self.epoch(row_ref.lane),
            deliveries: deliveries.iter().map(sink).collect(),
            key: key.map(Arc::from),
            attempts: 0,
        }
    }

    pub(crate) async fn settle_all(&mut self, settlements: &[Settlement]) -> SettleReport {
        let report = self.store.settle(self.owner, settlements).await.unwrap();
        let settled = settlements
            .iter()
            .filter(|settlement| !report.lost.contains(&settlement.row_ref.lane));
        self.settled
            .extend(settled.map(|settlement| settlement.row_ref.clone()));
        report
    }

    pub(crate) async fn settle(&mut self, outgoing: &Outgoing, deliveries: &[(&str, Verdict)]) -> SettleReport {
        let settlement = self.settlement(outgoing, deliveries);
        self.settle_all(&[settlement]).await
    }
}

pub(crate) fn outgoing(row: Row) -> Outgoing {
    match row {
        Row::Message(outgoing) => Arc::unwrap_or_clone(outgoing),
        other => panic!("no message: {other:?}"),
    }
}

/// A message whose payload is this text.
pub(crate) fn text(payload: &str) -> Message {
    Message::bytes("order.placed", "text/plain", payload.to_owned())
}

/// Many of one key, in order.
pub(crate) fn keyed(key: &str, payloads: &[&str]) -> Vec<Message> {
    payloads.iter().map(|payload| text(payload).key(key)).collect()
}

pub(crate) fn retry(seconds: u64) -> Verdict {
    Verdict::Retry {
        state: RetryState::Retry,
        delay: Duration::from_secs(seconds),
        charged: true,
        error: "the sink said no".to_owned(),
    }
}

pub(crate) fn down(seconds: u64) -> Verdict {
    Verdict::Retry {
        state: RetryState::Deferred,
        delay: Duration::from_secs(seconds),
        charged: false,
        error: "the sink is down".to_owned(),
    }
}

pub(crate) fn parked(seconds: u64) -> Verdict {
    Verdict::Retry {
        state: RetryState::Parked,
        delay: Duration::from_secs(seconds),
        charged: true,
        error: "the sink said no".to_owned(),
    }
}

pub(crate) fn dead(blocks: bool) -> Verdict {
    Verdict::Dead {
        reason: DeadReason::Permanent,
        error: "the sink said never".to_owned(),
        charged: true,
        blocks,
    }
}
