//! Outages of the store and of a sink, under virtual time: they cost seconds, and no message.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{EmitStore, Filter, OperateStore, RelayStore};
use sendoff::{Message, Outcome, Outgoing, Sink};
use sendoff_relay::{Relay, RelayBuilder, RunReport, Settings};
use sendoff_testkit::{Log, MemoryStore, Verb};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Level;

const STEPS: [Verb; 15] = [
    Verb::Register,
    Verb::Heartbeat,
    Verb::Acquire,
    Verb::Release,
    Verb::Deregister,
    Verb::Evict,
    Verb::ClearQuarantine,
    Verb::Quarantined,
    Verb::Read,
    Verb::BlockedKeys,
    Verb::Settle,
    Verb::ReleaseOrphans,
    Verb::Paused,
    Verb::Clean,
    Verb::Figures,
];

/// The relay cannot reach the store for so long.
async fn store_outage(store: &MemoryStore, length: Duration) {
    for verb in STEPS {
        store.faults().fail(verb, u32::MAX);
    }
    sleep(length).await;
    store.faults().clear();
}

async fn emit(store: &MemoryStore, messages: Vec<Message>) {
    let mut tx = store.begin().await.unwrap();
    tx.emit(&messages).await.unwrap();
    tx.commit().await.unwrap();
}

fn numbered(key: usize, n: usize) -> Message {
    Message::bytes("t", "text/plain", n.to_string()).key(format!("key-{key}"))
}

/// What a sink does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// It delivers.
    Up,
    /// It is stopped: calls wait until it goes on.
    Stopped,
    /// Calls end without an answer.
    Silent,
}

/// Notes what arrives when.
struct Broker {
    mode: watch::Sender<Mode>,
    arrived: Mutex<Vec<(Instant, Arc<Outgoing>)>>,
}

impl Broker {
    fn new(mode: Mode) -> Arc<Self> {
        Arc::new(Self {
            mode: watch::Sender::new(mode),
            arrived: Mutex::default(),
        })
    }

    /// The numbers that arrived of each key, in order.
    fn by_key(&self) -> HashMap<String, Vec<usize>> {
        let mut keys: HashMap<String, Vec<usize>> = HashMap::new();
        for (_, outgoing) in self.arrived.lock().unwrap().iter() {
            let number = std::str::from_utf8(&outgoing.payload).unwrap().parse().unwrap();
            keys.entry(outgoing.key.clone().unwrap_or_default())
                .or_default()
                .push(number);
        }
        keys
    }

    fn count(&self) -> usize {
        self.arrived.lock().unwrap().len()
    }
}

#[async_trait]
impl Sink for Broker {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let mut mode = self.mode.subscribe();
        let mode = *mode.wait_for(|mode| *mode != Mode::Stopped).await.unwrap();
        if mode == Mode::Silent {
            return vec![Outcome::Unknown("the connection broke".into()); batch.len()];
        }
        sleep(Duration::from_millis(1)).await;
        let arrived = batch.iter().map(|outgoing| (Instant::now(), outgoing.clone()));
        self.arrived.lock().unwrap().extend(arrived);
        vec![Outcome::Delivered; batch.len()]
    }
}

struct Running(CancellationToken, JoinHandle<sendoff::Result<RunReport>>);

impl Running {
    fn start(relay: RelayBuilder) -> Self {
        let stop = CancellationToken::new();
        let running = tokio::spawn(relay.build().unwrap().run(stop.clone()));
        Self(stop, running)
    }

    async fn stop(self) -> RunReport {
        self.0.cancel();
        self.1.await.unwrap().unwrap()
    }
}

fn relay(store: &Arc<MemoryStore>, broker: &Arc<Broker>) -> RelayBuilder {
    Relay::builder(store.clone())
        .sink("broker", broker.clone())
        .route("*".parse().unwrap(), ["broker"])
}

async fn dead(store: &MemoryStore) -> u64 {
    store.backlog().await.unwrap().dead
}

async fn until(what: &str, limit: u64, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            begun.elapsed() < Duration::from_secs(limit),
            "not within {limit} s: {what}"
        );
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_loses_its_lease_with_its_hands_full_again_and_again_makes_no_dead_letters() {
    for run in 0..20 {
        let store = Arc::new(MemoryStore::new());
        emit(&store, (0..10).map(|key| numbered(key, 0)).collect()).await;
        let broker = Broker::new(Mode::Stopped);
        let relays: Vec<Running> = (0..=run % 2).map(|_| Running::start(relay(&store, &broker))).collect();
        for _ in 0..5 {
            store_outage(&store, Duration::from_secs(12)).await;
            sleep(Duration::from_secs(5)).await;
        }
        broker.mode.send_replace(Mode::Up);
        until("all arrive", 60, || broker.by_key().len() == 10).await;
        assert_eq!(dead(&store).await, 0, "run {run}");
        for relay in relays {
            assert_eq!(relay.stop().await.dead, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn outages_of_the_store_do_not_put_messages_into_quarantine() {
    let store = Arc::new(MemoryStore::new());
    let broker = Broker::new(Mode::Up);
    let running = Running::start(relay(&store, &broker));
    for _ in 0..4 {
        sleep(Duration::from_secs(3)).await;
        store_outage(&store, Duration::from_secs(15)).await;
    }
    sleep(Duration::from_secs(2)).await;
    // A note of what is under way would fail now, and hold everything up.
    store.faults().fail(Verb::Quarantined, u32::MAX);
    emit(&store, (0..100).map(|n| numbered(n, 0)).collect()).await;
    until("they arrive as usual", 2, || broker.count() == 100).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn first_deliveries_come_soon_after_the_store_is_back() {
    for length in [2, 9, 30, 300] {
        let store = Arc::new(MemoryStore::new());
        let broker = Broker::new(Mode::Up);
        let running = Running::start(relay(&store, &broker));
        sleep(Duration::from_secs(3)).await;
        store_outage(&store, Duration::from_secs(length)).await;
        emit(&store, vec![numbered(0, 0)]).await;
        until("it arrives", 8, || broker.count() == 1).await;
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn messages_whose_outcome_is_unknown_go_again_in_order_as_soon_as_the_sink_answers() {
    for length in [1, 20, 200] {
        let store = Arc::new(MemoryStore::new());
        let broker = Broker::new(Mode::Silent);
        emit(&store, (0..60).map(|n| numbered(n % 6, n)).collect()).await;
        let running = Running::start(relay(&store, &broker));
        sleep(Duration::from_secs(length)).await;
        assert_eq!(broker.count(), 0);
        broker.mode.send_replace(Mode::Up);
        until("the first arrives", 5, || broker.count() > 0).await;
        until("all arrive", 20, || {
            broker.by_key().values().map(Vec::len).sum::<usize>() >= 60
        })
        .await;
        for (key, numbers) in broker.by_key() {
            assert!(numbers.is_sorted(), "{key}: {numbers:?}");
        }
        let report = running.stop().await;
        assert_eq!((report.dead, dead(&store).await), (0, 0));
        let filter = Filter::default();
        assert!(store.list(&filter, 1).await.unwrap().messages.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_is_two_lines_and_every_step_backs_off() {
    let (log, _guard) = Log::collect(Level::DEBUG);
    let store = Arc::new(MemoryStore::new());
    let broker = Broker::new(Mode::Up);
    let running = Running::start(relay(&store, &broker));
    sleep(Duration::from_secs(3)).await;
    emit(&store, (0..50).map(|n| numbered(n, 0)).collect()).await;
    sleep(Duration::from_secs(1)).await;
    log.take();
    store_outage(&store, Duration::from_secs(30)).await;
    let during = log.take();
    let failed = during.lines().filter(|line| line.contains("_failed")).count();
    assert!((10..150).contains(&failed), "{failed} calls failed within 30 s");
    sleep(Duration::from_secs(10)).await;
    let after = log.take();
    let told = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.contains("DEBUG"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(told(&during).len(), 1, "{:#?}", told(&during));
    assert!(during.contains("store_down"));
    let ended = told(&after);
    let up: Vec<_> = ended.iter().filter(|line| line.contains("store_up")).collect();
    assert!(up.len() == 1 && up[0].contains("down_ms=3"), "{ended:#?}");
    assert!(
        !after.contains("WARN") || after.matches("WARN").count() == after.matches("lease_lost").count(),
        "{ended:#?}"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_route_is_left_to_the_relay_that_has_one() {
    let store = Arc::new(MemoryStore::new());
    let (old, new) = (Broker::new(Mode::Up), Broker::new(Mode::Up));
    let older = Running::start(
        Relay::builder(store.clone())
            .sink("broker", old.clone())
            .route("old.*".parse().unwrap(), ["broker"]),
    );
    sleep(Duration::from_secs(2)).await;
    let newer = Running::start(
        Relay::builder(store.clone())
            .sink("broker", new.clone())
            .route("*".parse().unwrap(), ["broker"]),
    );
    sleep(Duration::from_secs(3)).await;
    let on = |topic: &str, key: usize, n: usize| {
        Message::bytes(topic, "text/plain", n.to_string()).key(format!("key-{key}"))
    };
    let messages = (0..200).map(|n| on(if n % 2 == 0 { "new.a" } else { "old.a" }, n % 20 / 2, n));
    emit(&store, messages.collect()).await;
    sleep(Duration::from_secs(20)).await;
    assert_eq!(dead(&store).await, 0);
    assert!(
        old.arrived
            .lock()
            .unwrap()
            .iter()
            .all(|(_, outgoing)| outgoing.topic == "old.a")
    );
    older.stop().await;
    until("all arrive", 30, || old.count() + new.count() >= 200).await;
    // A message of both topics in each key: what came before it arrived before it.
    let mut all: Vec<_> = [&old, &new]
        .iter()
        .flat_map(|broker| broker.arrived.lock().unwrap().clone())
        .collect();
    all.sort_by_key(|(at, _)| *at);
    let mut last: HashMap<String, usize> = HashMap::new();
    for (_, outgoing) in all {
        let number: usize = std::str::from_utf8(&outgoing.payload).unwrap().parse().unwrap();
        let before = last.insert(outgoing.key.clone().unwrap(), number);
        assert!(
            before.is_none_or(|before| before < number),
            "{before:?} before {number}"
        );
    }
    // Nobody has a route: it is a dead letter, and holds up nobody.
    assert_eq!(dead(&store).await, 0);
    newer.stop().await;
    let older = Running::start(
        Relay::builder(store.clone())
            .sink("broker", old.clone())
            .route("old.*".parse().unwrap(), ["broker"])
            .settings(Settings::default()),
    );
    let count = old.count();
    emit(&store, vec![on("new.a", 0, 1000), on("old.a", 0, 1001)]).await;
    until("the other one arrives", 10, || old.count() == count + 1).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(dead(&store).await, 1);
    older.stop().await;
}
