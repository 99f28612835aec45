//! The relay in a simulator: an in-memory store, tokio's paused clock, sinks that misbehave.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{EmitStore, OperateStore, Status, Stored};
use sendoff::{Delivery, Message, Outcome, Sink, Uuid};
use sendoff_relay::{Relay, RetryPolicy, Settings, TopicPolicy};
use sendoff_testkit::MemoryStore;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

async fn emit(store: &MemoryStore, messages: Vec<Message>) {
    let mut tx = store.begin().await.unwrap();
    tx.emit(&messages).await.unwrap();
    tx.commit().await.unwrap();
}

fn message(topic: &str) -> Message {
    Message::bytes(topic, "text/plain", "x")
}

async fn find(store: &MemoryStore, id: Uuid) -> Option<Stored> {
    store.find(id).await.unwrap().into_iter().next()
}

/// Kills the relay that hands it a message of the topic `poison`, and counts what others get through.
#[derive(Default)]
struct Deadly {
    victim: Mutex<Option<AbortHandle>>,
    crashes: AtomicU32,
    arrived: AtomicU32,
}

#[async_trait]
impl Sink for Deadly {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        if batch.iter().any(|delivery| delivery.topic == "poison") {
            self.crashes.fetch_add(1, Ordering::SeqCst);
            if let Some(victim) = self.victim.lock().unwrap().take() {
                victim.abort();
            }
            std::future::pending::<()>().await;
        }
        self.arrived.fetch_add(batch.len() as u32, Ordering::SeqCst);
        vec![Outcome::Delivered; batch.len()]
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_crashes_the_process_again_and_again_is_parked_in_the_dead_letters() {
    let store = Arc::new(MemoryStore::new());
    let poison = message("poison");
    let poison_id = poison.id();
    let mut messages: Vec<Message> = (0..200).map(|_| message("harmless")).collect();
    messages.insert(100, poison);
    emit(&store, messages).await;
    let sink = Arc::new(Deadly::default());
    for _life in 0..20 {
        let relay = Relay::builder(store.clone())
            .sink("deadly", sink.clone())
            .route("*".parse().unwrap(), ["deadly"])
            .build()
            .unwrap();
        let running = tokio::spawn(relay.run(CancellationToken::new()));
        *sink.victim.lock().unwrap() = Some(running.abort_handle());
        let parked = async {
            while find(&store, poison_id)
                .await
                .is_none_or(|stored| stored.status != Status::Dead)
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            ended = running => assert!(ended.unwrap_err().is_cancelled()),
            () = parked => break,
        }
        // The lease of the one that died has to run out before another can take its lanes.
        tokio::time::sleep(Duration::from_secs(11)).await;
    }
    let stored = find(&store, poison_id).await.expect("it is never thrown away");
    assert_eq!(
        (stored.status, stored.detail.as_deref()),
        (Status::Dead, Some("crashed"))
    );
    assert_eq!(sink.crashes.load(Ordering::SeqCst), 4, "twice unknown, twice alone");
    assert!(sink.arrived.load(Ordering::SeqCst) >= 200, "the others went through");
}

/// Never answers.
struct Silent;

#[async_trait]
impl Sink for Silent {
    async fn publish(&self, _: &[Arc<Delivery>]) -> Vec<Outcome> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_stops_waits_for_its_sinks_no_longer_than_it_may() {
    let store = Arc::new(MemoryStore::new());
    emit(&store, vec![message("t")]).await;
    let relay = Relay::builder(store.clone())
        .sink("silent", Arc::new(Silent))
        .route("*".parse().unwrap(), ["silent"])
        .settings(Settings {
            drain_timeout: Duration::from_secs(25),
            ..Settings::default()
        })
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = tokio::time::Instant::now();
    stop.cancel();
    running.await.unwrap().unwrap();
    let took = asked.elapsed();
    assert!(
        (Duration::from_secs(20)..=Duration::from_secs(31)).contains(&took),
        "{took:?}"
    );
}

/// Delivers after a while, and notes when it was called.
struct Slow(Duration, Mutex<Vec<tokio::time::Instant>>);

#[async_trait]
impl Sink for Slow {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        self.1.lock().unwrap().push(tokio::time::Instant::now());
        tokio::time::sleep(self.0).await;
        vec![Outcome::Delivered; batch.len()]
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_sink_does_not_hold_up_another() {
    let store = Arc::new(MemoryStore::new());
    let slow = Arc::new(Slow(Duration::from_secs(20), Mutex::default()));
    let quick = Arc::new(Slow(Duration::ZERO, Mutex::default()));
    let relay = Relay::builder(store.clone())
        .sink("slow", slow.clone())
        .sink("quick", quick.clone())
        .route("slow".parse().unwrap(), ["slow"])
        .route("*".parse().unwrap(), ["quick"])
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    emit(&store, (0..50).map(|_| message("slow")).collect()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!slow.1.lock().unwrap().is_empty());
    let emitted = tokio::time::Instant::now();
    emit(&store, vec![message("quick")]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let called = quick
        .1
        .lock()
        .unwrap()
        .first()
        .copied()
        .expect("the quick one was called");
    assert!(called - emitted < Duration::from_secs(1));
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn retries_wait_by_the_policy_of_their_topic() {
    struct Failing(Mutex<Vec<tokio::time::Instant>>);
    #[async_trait]
    impl Sink for Failing {
        async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
            self.0.lock().unwrap().push(tokio::time::Instant::now());
            vec![Outcome::Temporary("not now".into()); batch.len()]
        }
    }
    let store = Arc::new(MemoryStore::new());
    let sink = Arc::new(Failing(Mutex::default()));
    let retry = RetryPolicy {
        base: Duration::from_secs(10),
        multiplier: 3.0,
        jitter: 0.0,
        attempts: 3,
        ..Default::default()
    };
    let relay = Relay::builder(store.clone())
        .sink("failing", sink.clone())
        .route("*".parse().unwrap(), ["failing"])
        .topic(
            "t".parse().unwrap(),
            TopicPolicy {
                retry,
                ..Default::default()
            },
        )
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    let message = message("t");
    let id = message.id();
    emit(&store, vec![message]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let calls = sink.0.lock().unwrap().clone();
    assert_eq!(calls.len(), 3);
    for (pair, seconds) in calls.windows(2).zip([10.0, 30.0]) {
        let waited = (pair[1] - pair[0]).as_secs_f64();
        assert!((seconds..seconds + 1.0).contains(&waited), "{waited}");
    }
    let stored = find(&store, id).await.unwrap();
    assert_eq!(
        (stored.status, stored.detail.as_deref()),
        (Status::Dead, Some("exhausted"))
    );
    stop.cancel();
    running.await.unwrap().unwrap();
}
