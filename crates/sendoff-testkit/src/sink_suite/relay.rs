//! A real relay, and a broker that is killed under it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{Backlog, RelayStore};
use sendoff::{Message, Outcome, Outgoing, Pattern, Sink, Uuid};
use sendoff_relay::{OnFailure, Relay, RetryPolicy, RunReport, Settings, SinkSettings, TopicPolicy};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::message::TOPIC;
use super::registry::cases;
use super::scene::{PATIENCE, Scene};
use crate::{Fault, MemoryStore};

cases![
    a_broker_that_is_killed_under_a_relay_loses_nothing_and_holds_up_no_other_sink needs Restart,
    a_relay_that_stops_waits_for_the_confirms_of_what_is_on_its_way,
];

const BATCH: usize = 25;
/// Few enough for every sink to have all of them in flight.
const FEW: usize = 4;
const CONCURRENCY: usize = 2;
const KEYS: usize = 7;
/// How long messages may take to a sink that is well.
const SOON: Duration = Duration::from_secs(10);

/// Emits a few messages with keys, numbered on.
async fn emit(store: &MemoryStore, emitted: &mut Vec<Uuid>) {
    let key = |n| format!("k{}", n % KEYS);
    emit_numbers(store, emitted, 10, |n, message| message.key(key(n))).await;
}

/// Emits so many messages, numbered on.
async fn emit_numbers(
    store: &MemoryStore,
    emitted: &mut Vec<Uuid>,
    count: usize,
    change: impl Fn(usize, Message) -> Message,
) {
    use sendoff::store::EmitStore as _;
    let mut tx = store.begin().await.expect("a transaction");
    let messages: Vec<Message> = (emitted.len()..emitted.len() + count)
        .map(|n| change(n, Message::json(TOPIC, &n).expect("a number")))
        .collect();
    let ids = tx.emit(&messages).await.expect("they are stored");
    tx.commit().await.expect("they are committed");
    emitted.extend(ids.into_iter().map(sendoff::Emitted::id));
}

/// A sink that takes everything, for the other delivery of each message.
#[derive(Default)]
struct Steady(AtomicUsize);

#[async_trait]
impl Sink for Steady {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        self.0.fetch_add(batch.len(), Ordering::SeqCst);
        vec![Outcome::Delivered; batch.len()]
    }
}

type Running = JoinHandle<sendoff::Result<RunReport>>;

/// Starts a relay that gives all messages to both sinks.
fn start(store: &MemoryStore, sink: Arc<dyn Sink>, steady: Arc<Steady>) -> (Running, CancellationToken) {
    let everything: Pattern = "*".parse().expect("a pattern");
    let relay = Relay::builder(Arc::new(store.clone()))
        .sink("sink", sink)
        .sink("steady", steady)
        .sink_settings(
            "sink",
            SinkSettings {
                batch: BATCH,
                concurrency: CONCURRENCY,
                timeout: Duration::from_secs(20),
                rate: None,
            },
        )
        .route(everything, ["sink", "steady"])
        .default_policy(TopicPolicy {
            retry: RetryPolicy {
                base: Duration::from_millis(50),
                max: Duration::from_millis(500),
                attempts: 1000,
                ..RetryPolicy::default()
            },
            on_failure: OnFailure::Block,
        })
        .settings(Settings::default())
        .build()
        .expect("a relay");
    let stop = CancellationToken::new();
    (tokio::spawn(relay.run(stop.clone())), stop)
}

async fn ends(running: Running) {
    let stopped = timeout(PATIENCE, running).await.expect("it stops").expect("no panic");
    stopped.expect("the relay is content");
}

async fn a_broker_that_is_killed_under_a_relay_loses_nothing_and_holds_up_no_other_sink(mut scene: Scene) {
    let (store, steady) = (MemoryStore::new(), Arc::new(Steady::default()));
    let (running, stop) = start(&store, scene.direct_sink(), steady.clone());

    let mut emitted = Vec::new();
    while scene.counts().await.len() < 100 {
        emit(&store, &mut emitted).await;
    }
    scene.broker.kill().await;
    for _ in 0..20 {
        emit(&store, &mut emitted).await;
        sleep(Duration::from_millis(20)).await;
    }
    let began = Instant::now();
    while steady.0.load(Ordering::SeqCst) < emitted.len() {
        let arrived = steady.0.load(Ordering::SeqCst);
        assert!(
            began.elapsed() < SOON,
            "{arrived} of {} at the other sink",
            emitted.len()
        );
        sleep(Duration::from_millis(5)).await;
    }
    scene.broker.restart().await;
    emit(&store, &mut emitted).await;

    // However slow the machine is, it goes on.
    let (mut moved, mut left) = (Instant::now(), Backlog::default());
    loop {
        let backlog = store.backlog().await.expect("a backlog");
        if backlog == Backlog::default() {
            break;
        }
        if backlog != left {
            (moved, left) = (Instant::now(), backlog);
        }
        assert!(moved.elapsed() < PATIENCE, "stuck: {left:?}");
        sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    ends(running).await;
    assert_eq!(
        steady.0.load(Ordering::SeqCst),
        emitted.len(),
        "the other sink got each once"
    );

    let copies = scene.copies().await;
    let ids: HashSet<Uuid> = copies.iter().map(|copy| copy.id).collect();
    let lost: Vec<_> = emitted.iter().filter(|id| !ids.contains(id)).collect();
    assert!(lost.is_empty(), "{} of {} were lost", lost.len(), emitted.len());
    assert_eq!(ids.len(), emitted.len(), "some were invented");
    let copies_too_many = copies.len() - ids.len();
    assert!(copies_too_many <= BATCH * CONCURRENCY, "{copies_too_many} duplicates");

    let numbers: HashMap<Uuid, usize> = emitted.iter().copied().zip(0..).collect();
    let (mut seen, mut last) = (HashSet::new(), [None; KEYS]);
    for copy in copies.iter().filter(|copy| seen.insert(copy.id)) {
        let n = numbers[&copy.id];
        assert!(
            last[n % KEYS] < Some(n),
            "{n} of its key came after {:?}",
            last[n % KEYS]
        );
        last[n % KEYS] = Some(n);
    }
}

async fn a_relay_that_stops_waits_for_the_confirms_of_what_is_on_its_way(mut scene: Scene) {
    let store = MemoryStore::new();
    let (running, stop) = start(&store, scene.sink(), Arc::default());
    let mut emitted = Vec::new();
    // It is connected when it has delivered something.
    emit_numbers(&store, &mut emitted, 1, |_, message| message).await;
    let began = Instant::now();
    while store.backlog().await.expect("a backlog") != Backlog::default() {
        assert!(began.elapsed() < PATIENCE, "the first is not delivered");
        sleep(Duration::from_millis(10)).await;
    }
    scene.proxy.set(Fault::HoldAnswers);
    let answered = scene.proxy.answered();
    emit_numbers(&store, &mut emitted, FEW, |_, message| message).await;
    let began = Instant::now();
    while scene.copies().await.len() < emitted.len() {
        assert!(began.elapsed() < PATIENCE, "they do not arrive");
        sleep(Duration::from_millis(10)).await;
    }
    scene.proxy.wait_until_answered(answered).await;
    stop.cancel();
    sleep(Duration::from_millis(500)).await;
    assert!(!running.is_finished(), "it went without the confirms");
    scene.proxy.set(Fault::Pass);
    ends(running).await;
    assert_eq!(store.backlog().await.expect("a backlog"), Backlog::default());
    let counts = scene.counts().await;
    for id in emitted {
        assert_eq!(counts.get(&id), Some(&1), "what was confirmed is not sent again");
    }
}
