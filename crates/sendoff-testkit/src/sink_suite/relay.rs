//! A real relay, and a broker that is killed under it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Backlog, RelayStore};
use sendoff::{Message, Pattern, Uuid};
use sendoff_relay::{HeadPolicy, Relay, RetryPolicy, Settings, SinkSettings, TopicPolicy};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::message::TOPIC;
use super::registry::cases;
use super::scene::{PATIENCE, Scene};
use crate::MemoryStore;

cases![a_broker_that_is_killed_under_a_relay_loses_nothing needs Restart];

const BATCH: usize = 25;
const CONCURRENCY: usize = 2;
const KEYS: usize = 7;

/// Emits a few messages, numbered on.
async fn emit(store: &MemoryStore, emitted: &mut Vec<Uuid>) {
    use sendoff::store::EmitStore as _;
    let mut tx = store.begin().await.expect("a transaction");
    let messages: Vec<Message> = (emitted.len()..emitted.len() + 10)
        .map(|n| {
            Message::json(TOPIC, &n)
                .expect("a number")
                .key(format!("k{}", n % KEYS))
        })
        .collect();
    let ids = tx.emit(&messages).await.expect("they are stored");
    tx.commit().await.expect("they are committed");
    emitted.extend(ids.into_iter().map(sendoff::Emitted::id));
}

async fn a_broker_that_is_killed_under_a_relay_loses_nothing(mut scene: Scene) {
    let store = MemoryStore::new();
    let everything: Pattern = "*".parse().expect("a pattern");
    let relay = Relay::builder(Arc::new(store.clone()))
        .sink("sink", scene.direct_sink())
        .sink_settings(
            "sink",
            SinkSettings {
                batch: BATCH,
                concurrency: CONCURRENCY,
                timeout: Duration::from_secs(20),
                rate: None,
            },
        )
        .route(everything, ["sink"])
        .default_policy(TopicPolicy {
            retry: RetryPolicy {
                base: Duration::from_millis(50),
                max: Duration::from_millis(500),
                attempts: 1000,
                ..RetryPolicy::default()
            },
            head: HeadPolicy::Block,
        })
        .settings(Settings::default())
        .build()
        .expect("a relay");
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));

    let mut emitted = Vec::new();
    while scene.counts().await.len() < 100 {
        emit(&store, &mut emitted).await;
    }
    scene.broker.kill().await;
    for _ in 0..20 {
        emit(&store, &mut emitted).await;
        sleep(Duration::from_millis(20)).await;
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
    let stopped = timeout(PATIENCE, running).await.expect("it stops").expect("no panic");
    stopped.expect("the relay is content");

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
