//! A schema of its own for every test, on the server that the environment names.

use std::sync::Arc;
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::store::{
    DeliverySettlement, EmitStore, LaneGrant, MigrateStore, Outgoing, OwnerId, Page, ReadRequest, Reader, RelayCard,
    RelayStore, Row, RowRef, SettleReport, Settlement, Table, Verdict,
};
use sendoff::{Message, Uuid};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use tokio_postgres::{Client, NoTls};

pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// The value of an environment variable that `cargo xtask test` sets.
pub(crate) fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run the tests with `cargo xtask test`"))
}

pub(crate) fn postgres_url() -> String {
    server("SENDOFF_TEST_POSTGRES_URL")
}

pub(crate) struct Scratch {
    pub(crate) store: PostgresStore,
    pub(crate) names: Names,
    pub(crate) sql: Client,
}

impl Scratch {
    /// Empty, migrated tables.
    pub(crate) async fn new() -> Self {
        Self::with(|config| config).await
    }

    pub(crate) async fn with(change: impl FnOnce(PostgresConfig) -> PostgresConfig) -> Self {
        let scratch = Self::bare(&random_name(), change).await;
        scratch.store.migrate().await.unwrap();
        scratch
    }

    /// An empty schema.
    pub(crate) async fn bare(schema: &str, change: impl FnOnce(PostgresConfig) -> PostgresConfig) -> Self {
        let names = Names::new(Some(schema), "outbox_").unwrap();
        let sql = connect().await;
        sql.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"))
            .await
            .unwrap();
        let config = change(PostgresConfig::new(postgres_url()).names(names.clone()));
        Self {
            store: PostgresStore::new(config).unwrap(),
            names,
            sql,
        }
    }

    /// Another store on the same tables.
    pub(crate) fn again(&self, change: impl FnOnce(PostgresConfig) -> PostgresConfig) -> PostgresStore {
        PostgresStore::new(change(PostgresConfig::new(postgres_url()).names(self.names.clone()))).unwrap()
    }

    /// Runs SQL that is written with `outbox_`.
    pub(crate) async fn run(&self, sql: &str) {
        let sql = self.names.render(sql);
        self.sql
            .batch_execute(&sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The first column of the first row, as text.
    pub(crate) async fn value(&self, sql: &str) -> String {
        let sql = self.names.render(sql);
        let rows = self
            .sql
            .simple_query(&sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        rows.iter()
            .find_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
                _ => None,
            })
            .unwrap_or_else(|| "none".to_owned())
    }

    pub(crate) async fn emit(&self, messages: &[Message]) {
        let mut tx = self.store.begin().await.unwrap();
        tx.emit(messages).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// A relay that holds all lanes.
    pub(crate) async fn relay(&self) -> Relay {
        Relay::new(self.store.clone()).await
    }
}

/// Where a row could be.
pub(crate) fn row_ref(lane: u16, seq: i64, sink: Option<&str>) -> RowRef {
    RowRef {
        table: sink.map_or(Table::Ready, |_| Table::Waiting),
        lane,
        seq,
        id: Uuid::from_u128(seq.unsigned_abs().into()).into(),
        sink: sink.map(Into::into),
        locator: 0,
    }
}

pub(crate) async fn connect() -> Client {
    connect_to(&postgres_url()).await
}

pub(crate) async fn connect_to(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// What a relay does, by hand.
pub(crate) struct Relay {
    pub(crate) store: PostgresStore,
    pub(crate) owner: OwnerId,
    pub(crate) grants: Vec<LaneGrant>,
    pub(crate) reader: Box<dyn Reader>,
    pub(crate) settled: Vec<RowRef>,
}

impl Relay {
    pub(crate) async fn new(store: PostgresStore) -> Self {
        let owner = OwnerId::random();
        store.register(owner, &RelayCard::named("test"), LEASE).await.unwrap();
        let grants = store.acquire(owner, usize::from(store.lanes())).await.unwrap();
        let mut reader = store.reader();
        reader.gained(&grants);
        Self {
            store,
            owner,
            grants,
            reader,
            settled: Vec::new(),
        }
    }

    pub(crate) fn epoch(&self, lane: u16) -> i64 {
        self.grants.iter().find(|grant| grant.lane == lane).unwrap().epoch
    }

    pub(crate) async fn page(&mut self) -> Page {
        let request = ReadRequest {
            limit: 1000,
            settled: std::mem::take(&mut self.settled),
            due: true,
            ready: true,
            ..ReadRequest::default()
        };
        self.reader.read(request).await.unwrap()
    }

    /// The messages of one read.
    pub(crate) async fn read(&mut self) -> Vec<Outgoing> {
        let page = self.page().await;
        page.rows
            .into_iter()
            .map(|row| match row {
                Row::Message(outgoing) => Arc::unwrap_or_clone(outgoing),
                other => panic!("not a message to deliver: {other:?}"),
            })
            .collect()
    }

    /// Reads until a read brings something.
    pub(crate) async fn next(&mut self) -> Vec<Outgoing> {
        for _ in 0..500 {
            let found = self.read().await;
            if !found.is_empty() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nothing came");
    }

    pub(crate) fn settlement(&self, outgoing: &Outgoing, deliveries: &[(&str, Verdict)]) -> Settlement {
        Settlement {
            row_ref: outgoing.row_ref.clone(),
            epoch: self.epoch(outgoing.row_ref.lane),
            deliveries: deliveries
                .iter()
                .map(|(sink, verdict)| DeliverySettlement {
                    sink: Arc::from(*sink),
                    verdict: verdict.clone(),
                })
                .collect(),
            key: outgoing.key.as_deref().map(Arc::from),
            attempts: outgoing.attempts,
        }
    }

    pub(crate) async fn settle(&mut self, outgoing: &Outgoing, deliveries: &[(&str, Verdict)]) -> SettleReport {
        let settlement = self.settlement(outgoing, deliveries);
        self.settle_all(&[settlement]).await
    }

    pub(crate) async fn settle_all(&mut self, settlements: &[Settlement]) -> SettleReport {
        let report = self.store.settle(self.owner, settlements).await.unwrap();
        let held = settlements
            .iter()
            .filter(|settlement| !report.lost.contains(&settlement.row_ref.lane));
        self.settled.extend(held.map(|settlement| settlement.row_ref.clone()));
        report
    }

    pub(crate) async fn deliver(&mut self, outgoing: &[Outgoing]) -> SettleReport {
        let settlements: Vec<_> = outgoing.iter().map(|outgoing| self.settlement(outgoing, &[])).collect();
        self.settle_all(&settlements).await
    }
}

pub(crate) fn message(topic: &str) -> Message {
    Message::bytes(topic, "text/plain", topic.as_bytes().to_vec())
}

pub(crate) fn topics(outgoing: &[Outgoing]) -> Vec<&str> {
    outgoing.iter().map(|outgoing| outgoing.topic.as_str()).collect()
}

pub(crate) fn random_name() -> String {
    format!("t_{}", &Uuid::new_v4().simple().to_string()[..12])
}
