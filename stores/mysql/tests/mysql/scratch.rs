//! A database of its own for every test, on the server that the environment names.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use sendoff::emit::Names;
use sendoff::store::{
    DeliverySettlement, EmitStore, LaneGrant, MigrateStore, Outgoing, OwnerId, Page, ReadRequest, Reader, RelayCard,
    RelayStore, Row, RowRef, SettleReport, Settlement, Verdict,
};
use sendoff::{Message, Uuid};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};

pub(crate) const LEASE: Duration = Duration::from_secs(60);

pub(crate) fn url() -> String {
    let variable = "SENDOFF_TEST_MYSQL_URL";
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run the tests with `cargo xtask test`"))
}

pub(crate) struct Scratch {
    pub(crate) store: MysqlStore,
    pub(crate) names: Names,
}

impl Scratch {
    /// Empty, migrated tables.
    pub(crate) async fn new() -> Self {
        let scratch = Self::bare().await;
        scratch.store.migrate().await.unwrap();
        scratch
    }

    /// An empty database.
    pub(crate) async fn bare() -> Self {
        let name = format!("t_{}", &Uuid::new_v4().simple().to_string()[..12]);
        connect()
            .await
            .query_drop(format!("CREATE DATABASE {name}"))
            .await
            .unwrap();
        let names = Names::new(Some(&name), Names::PREFIX).unwrap();
        Self {
            store: MysqlStore::new(MysqlConfig::new(url()).names(names.clone())).unwrap(),
            names,
        }
    }

    /// Runs SQL that is written with `outbox_`, on a connection of its own.
    pub(crate) async fn run(&self, sql: &str) {
        connect().await.query_drop(self.names.render(sql)).await.unwrap();
    }

    /// The first column of the first row.
    pub(crate) async fn value(&self, sql: &str) -> String {
        let found: Option<Option<String>> = connect().await.query_first(self.names.render(sql)).await.unwrap();
        found.flatten().unwrap_or_else(|| "none".to_owned())
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

pub(crate) async fn connect() -> Conn {
    let opts = OptsBuilder::from_opts(Opts::from_url(&url()).unwrap()).prefer_socket(false);
    Conn::new(opts).await.unwrap()
}

/// What a relay does, by hand.
pub(crate) struct Relay {
    pub(crate) store: MysqlStore,
    pub(crate) owner: OwnerId,
    pub(crate) grants: Vec<LaneGrant>,
    reader: Box<dyn Reader>,
    settled: Vec<RowRef>,
}

impl Relay {
    pub(crate) async fn new(store: MysqlStore) -> Self {
        Self::with_lease(store, LEASE).await
    }

    pub(crate) async fn with_lease(store: MysqlStore, lease: Duration) -> Self {
        let owner = OwnerId::random();
        store.register(owner, &RelayCard::named("test"), lease).await.unwrap();
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

    pub(crate) async fn page(&mut self, limit: usize) -> Page {
        let request = ReadRequest {
            limit,
            settled: std::mem::take(&mut self.settled),
            due: true,
            ready: true,
            ..ReadRequest::default()
        };
        self.reader.read(request).await.unwrap()
    }

    /// Reads until so many messages have come.
    pub(crate) async fn read(&mut self, count: usize) -> Vec<Outgoing> {
        let mut read = Vec::new();
        for _ in 0..1000 {
            for row in self.page(1000).await.rows {
                match row {
                    Row::Message(outgoing) => read.push(Arc::unwrap_or_clone(outgoing)),
                    other => panic!("not a message to deliver: {other:?}"),
                }
            }
            if read.len() >= count {
                assert_eq!(read.len(), count);
                return read;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} of {count} messages came", read.len());
    }

    pub(crate) async fn settle(&mut self, outgoing: &Outgoing, deliveries: &[(&str, Verdict)]) -> SettleReport {
        let settlement = self.settlement(outgoing, deliveries);
        let report = self.store.settle(self.owner, &[settlement]).await.unwrap();
        self.settled.push(outgoing.row_ref.clone());
        report
    }

    pub(crate) fn settlement(&self, outgoing: &Outgoing, deliveries: &[(&str, Verdict)]) -> Settlement {
        let lane = outgoing.row_ref.lane;
        Settlement {
            row_ref: outgoing.row_ref.clone(),
            epoch: self.grants.iter().find(|grant| grant.lane == lane).unwrap().epoch,
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
}

pub(crate) fn message(topic: &str) -> Message {
    Message::bytes(topic, "text/plain", topic.as_bytes().to_vec())
}

pub(crate) fn topics(outgoing: &[Outgoing]) -> Vec<&str> {
    outgoing.iter().map(|outgoing| outgoing.topic.as_str()).collect()
}
