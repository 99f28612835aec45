//! A relay vanishes in the middle of a transaction: other relays still take its lanes.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use sendoff::ErrorKind;
use sendoff::store::{OperateStore, OwnerId, RelayCard, RelayStore, RetryState, Settlement, Verdict};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_testkit::{Fault, FaultProxy};
use tokio::time::{Instant, sleep};

use crate::scratch::{LEASE, Relay, Scratch, connect, message, url};

const SHORT_LEASE: Duration = Duration::from_secs(2);

/// By then, after the end of its lease at the latest, a relay that is gone is replaced.
const GRACE: Duration = Duration::from_secs(2);

const PATIENCE: Duration = Duration::from_secs(20);

fn retry() -> Verdict {
    Verdict::Retry {
        state: RetryState::Retry,
        delay: Duration::from_secs(3600),
        charged: true,
        error: "no".to_owned(),
    }
}

/// A relay that has messages in flight and is about to make them wait.
async fn about_to_settle(scratch: &Scratch, store: MysqlStore, lease: Duration) -> (Relay, Vec<Settlement>) {
    scratch
        .emit(&[message("a").key("k"), message("b").key("k"), message("c")])
        .await;
    let mut relay = Relay::with_lease(store, lease).await;
    let read = relay.read(3).await;
    let settlements = read.iter().map(|d| relay.settlement(d, &[("sink", retry())])).collect();
    (relay, settlements)
}

/// Waits until a transaction has a lock on the relay's row.
async fn until_locked(scratch: &Scratch, conn: &mut Conn, owner: OwnerId) {
    let sql = format!("SELECT 1 FROM outbox_relay WHERE owner = '{owner}' FOR UPDATE SKIP LOCKED");
    let sql = scratch.names.render(&sql);
    let began = Instant::now();
    while conn.query_first::<u8, _>(sql.as_str()).await.unwrap().is_some() {
        assert!(began.elapsed() < PATIENCE, "the transaction has not begun");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Another relay evicts until it has all lanes. Returns how long that took.
async fn taken_over(scratch: &Scratch) -> Duration {
    let began = Instant::now();
    let (other, store) = (OwnerId::random(), &scratch.store);
    store.register(other, &RelayCard::named("other"), LEASE).await.unwrap();
    let mut lanes = 0;
    while lanes < usize::from(store.lanes()) {
        assert!(began.elapsed() < PATIENCE, "{lanes} lanes were taken over");
        store.evict().await.unwrap();
        lanes += store.acquire(other, 100).await.unwrap().len();
        sleep(Duration::from_millis(20)).await;
    }
    began.elapsed()
}

enum Call {
    Settle,
    Heartbeat,
}

/// The relay's side does not answer any more, and does not hang up either, from the moment on that its call has a lock.
async fn is_replaced_when_it_freezes_in(call: Call) {
    let scratch = Scratch::new().await;
    let port = Opts::from_url(&url()).unwrap().tcp_port();
    let proxy = FaultProxy::start(port).await;
    let config = MysqlConfig::new(proxy.url(&url(), port)).names(scratch.names.clone());
    let store = MysqlStore::new(config).unwrap();
    let (relay, settlements) = about_to_settle(&scratch, store.clone(), SHORT_LEASE).await;
    let mut watching = connect().await;
    let owner = relay.owner;
    assert!(store.heartbeat(owner, SHORT_LEASE).await.unwrap().alive);
    proxy.set(Fault::Delay(Duration::from_millis(40)));
    let frozen = tokio::spawn(async move {
        match call {
            Call::Settle => store.settle(owner, &settlements).await.map(drop),
            Call::Heartbeat => store.heartbeat(owner, SHORT_LEASE).await.map(drop),
        }
    });
    until_locked(&scratch, &mut watching, owner).await;
    proxy.set(Fault::HoldAnswers);
    let took = taken_over(&scratch).await;
    assert!(took <= SHORT_LEASE + GRACE, "{took:?}");
    assert!(!frozen.is_finished(), "it has not frozen");
    frozen.abort();
    let backlog = scratch.store.backlog().await.unwrap();
    assert_eq!((backlog.ready, backlog.waiting), (3, 0), "what it had begun is undone");
}

#[tokio::test]
async fn a_relay_that_freezes_in_a_settlement_is_replaced() {
    is_replaced_when_it_freezes_in(Call::Settle).await;
}

#[tokio::test]
async fn a_relay_that_freezes_in_a_heartbeat_is_replaced() {
    is_replaced_when_it_freezes_in(Call::Heartbeat).await;
}

/// A settlement that the server's limits of time do not end: a statement takes long, and it may.
struct Endless {
    scratch: Scratch,
    settling: tokio::task::JoinHandle<sendoff::Result<()>>,
}

impl Endless {
    /// Its lease ends soon, although it counts with a long one.
    async fn begin() -> Self {
        let scratch = Scratch::new().await;
        let (relay, settlements) = about_to_settle(&scratch, scratch.store.clone(), LEASE).await;
        scratch
            .run("CREATE TRIGGER outbox_slow BEFORE INSERT ON outbox_waiting FOR EACH ROW DO SLEEP(30)")
            .await;
        let mut watching = connect().await;
        let owner = relay.owner;
        scratch
            .run("UPDATE outbox_relay SET until = UTC_TIMESTAMP(6) + INTERVAL 2 SECOND")
            .await;
        let settling = tokio::spawn(async move { relay.store.settle(owner, &settlements).await.map(drop) });
        until_locked(&scratch, &mut watching, owner).await;
        Self { scratch, settling }
    }

    async fn assert_ended(self) {
        let error = self.settling.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        let backlog = self.scratch.store.backlog().await.unwrap();
        assert_eq!((backlog.ready, backlog.waiting), (3, 0), "what it had begun is undone");
    }
}

#[tokio::test]
async fn an_eviction_ends_a_settlement_that_outlives_its_lease() {
    let endless = Endless::begin().await;
    let took = taken_over(&endless.scratch).await;
    assert!(took <= Duration::from_secs(2) + GRACE, "{took:?}");
    endless.assert_ended().await;
}

#[tokio::test]
async fn reaping_ends_a_settlement_that_outlives_its_lease() {
    let endless = Endless::begin().await;
    let (store, began) = (&endless.scratch.store, Instant::now());
    let mut lanes = 0;
    while lanes < u64::from(store.lanes()) {
        assert!(
            began.elapsed() < Duration::from_secs(2) + GRACE,
            "{lanes} lanes are free"
        );
        lanes += store
            .reap_gone(Duration::from_secs(3600), "operator")
            .await
            .unwrap()
            .lanes;
        sleep(Duration::from_millis(20)).await;
    }
    let noted: u64 = store
        .audit(1000)
        .await
        .unwrap()
        .iter()
        .map(|audit| audit.affected)
        .sum();
    assert_eq!(noted, lanes);
    endless.assert_ended().await;
}

/// Only a transaction is limited: otherwise every settlement after a pause would have to connect.
#[tokio::test]
async fn connections_stay_open_between_settlements() {
    // By a database of its own, the test tells its connections from those of others.
    let scratch = Scratch::new().await;
    let database = scratch.names.schema().unwrap().to_owned();
    let server = url().rsplit_once('/').unwrap().0.to_owned();
    let store = MysqlStore::new(MysqlConfig::new(format!("{server}/{database}"))).unwrap();
    let (relay, settlements) = about_to_settle(&scratch, store.clone(), SHORT_LEASE).await;
    let report = store.settle(relay.owner, &settlements).await.unwrap();
    assert!(report.lost.is_empty());
    let mut conn = connect().await;
    let ours = format!("SELECT id, time FROM information_schema.processlist WHERE db = '{database}' ORDER BY id");
    let before: Vec<(u64, u64)> = conn.query(ours.as_str()).await.unwrap();
    let ids = |rows: &[(u64, u64)]| rows.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert!(!before.is_empty());
    let began = Instant::now();
    loop {
        let now: Vec<(u64, u64)> = conn.query(ours.as_str()).await.unwrap();
        assert_eq!(ids(&now), ids(&before), "a connection was closed");
        // More than a transaction may be idle with this lease.
        if now.iter().all(|(_, idle)| *idle >= 3) {
            break;
        }
        assert!(began.elapsed() < PATIENCE);
        sleep(Duration::from_millis(100)).await;
    }
}
