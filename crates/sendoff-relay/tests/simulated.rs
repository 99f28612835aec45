//! The relay in a simulator: an in-memory store, tokio's paused clock, sinks that misbehave.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{EmitStore, OperateStore, Status, Stored};
use sendoff::{Message, Outcome, Outgoing, Sink, Uuid};
use sendoff_relay::{Relay, RetryPolicy, Settings, SinkSettings, TopicPolicy};
use sendoff_testkit::{MemoryStore, Verb};
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
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        if batch.iter().any(|outgoing| outgoing.topic == "poison") {
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
    // So many that no lane has the poison alone: it would be found one death earlier there.
    let mut messages: Vec<Message> = (0..4000).map(|_| message("harmless")).collect();
    messages.insert(2000, poison);
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
    assert_eq!(
        sink.crashes.load(Ordering::SeqCst),
        5,
        "twice unknown, once in a group, twice alone"
    );
    assert!(sink.arrived.load(Ordering::SeqCst) >= 4000, "the others went through");
}

/// Never answers.
struct Silent;

#[async_trait]
impl Sink for Silent {
    async fn publish(&self, _: &[Arc<Outgoing>]) -> Vec<Outcome> {
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
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
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
        async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
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

/// Takes a second for every batch, and notes what came when.
#[derive(Default)]
struct Crawling {
    arrived: AtomicU32,
}

#[async_trait]
impl Sink for Crawling {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.arrived.fetch_add(batch.len() as u32, Ordering::SeqCst);
        vec![Outcome::Delivered; batch.len()]
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_sink_with_a_backlog_leaves_room_for_another() {
    let store = Arc::new(MemoryStore::new());
    // Far more for the slow one than a relay takes in flight, and all of it in front of the others.
    emit(&store, (0..2000).map(|_| message("slow")).collect()).await;
    emit(&store, (0..500).map(|_| message("quick")).collect()).await;
    let (slow, quick) = (Arc::new(Crawling::default()), Arc::new(Deadly::default()));
    let relay = Relay::builder(store.clone())
        .sink("slow", slow.clone())
        .sink("quick", quick.clone())
        .sink_settings(
            "slow",
            SinkSettings {
                batch: 10,
                concurrency: 1,
                ..SinkSettings::default()
            },
        )
        .route("slow".parse().unwrap(), ["slow"])
        .route("quick".parse().unwrap(), ["quick"])
        .settings(Settings {
            batch: 50,
            max_in_flight: 200,
            ..Settings::default()
        })
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    let begun = tokio::time::Instant::now();
    while quick.arrived.load(Ordering::SeqCst) < 500 {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{} of 500 after twenty seconds",
            quick.arrived.load(Ordering::SeqCst)
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(slow.arrived.load(Ordering::SeqCst) < 300);
    while slow.arrived.load(Ordering::SeqCst) < 2000 {
        assert!(
            begun.elapsed() < Duration::from_secs(400),
            "the slow one gets all of its own"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(slow.arrived.load(Ordering::SeqCst), 2000, "nothing twice");
}

#[tokio::test(start_paused = true)]
async fn a_sink_gets_no_more_a_second_than_its_rate() {
    let store = Arc::new(MemoryStore::new());
    emit(&store, (0..500).map(|_| message("t")).collect()).await;
    let sink = Arc::new(Deadly::default());
    let relay = Relay::builder(store.clone())
        .sink("limited", sink.clone())
        .sink_settings(
            "limited",
            SinkSettings {
                rate: Some(50.0),
                ..SinkSettings::default()
            },
        )
        .route("*".parse().unwrap(), ["limited"])
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    let mut seen = 0;
    let mut seconds = 0;
    while seen < 500 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = sink.arrived.load(Ordering::SeqCst);
        assert!(now - seen <= 56, "{} in one second", now - seen);
        seen = now;
        seconds += 1;
        assert!(seconds < 15, "{seen} of 500 after {seconds} seconds");
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[test]
fn a_rate_of_nothing_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let built = Relay::builder(store)
        .sink("never", Arc::new(Crawling::default()))
        .sink_settings(
            "never",
            SinkSettings {
                rate: Some(0.0),
                ..SinkSettings::default()
            },
        )
        .route("*".parse().unwrap(), ["never"])
        .build();
    let error = built.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("\"never\"") && error.contains("pause"), "{error}");
}

/// Notes the sizes of its batches; down until it is told otherwise.
struct Outage {
    down: std::sync::atomic::AtomicBool,
    batches: Mutex<Vec<usize>>,
}

#[async_trait]
impl Sink for Outage {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        if self.down.load(Ordering::SeqCst) {
            return vec![Outcome::SinkDown("no broker".into()); batch.len()];
        }
        self.batches.lock().unwrap().push(batch.len());
        tokio::time::sleep(Duration::from_millis(10)).await;
        vec![Outcome::Delivered; batch.len()]
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_comes_back_is_given_its_backlog_step_by_step_and_no_attempt_is_charged() {
    let store = Arc::new(MemoryStore::new());
    let messages: Vec<Message> = (0..3000).map(|_| message("t").max_attempts(1)).collect();
    emit(&store, messages).await;
    let sink = Arc::new(Outage {
        down: true.into(),
        batches: Mutex::default(),
    });
    let relay = Relay::builder(store.clone())
        .sink("broker", sink.clone())
        .route("*".parse().unwrap(), ["broker"])
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    sink.down.store(false, Ordering::SeqCst);
    let begun = tokio::time::Instant::now();
    while sink.batches.lock().unwrap().iter().sum::<usize>() < 3000 {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "{:?}",
            sink.batches.lock().unwrap()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!(report.dead, 0, "an outage charges nothing");
    let batches = sink.batches.lock().unwrap();
    assert_eq!(batches[0], 1, "the probe");
    assert!(batches[1] <= 3 && batches[2] <= 9, "{batches:?}");
}

#[tokio::test(start_paused = true)]
async fn a_relay_whose_heartbeat_hangs_sleeps_until_it_is_answered() {
    let store = Arc::new(MemoryStore::new());
    let relay = Relay::builder(store.clone())
        .sink("sink", Arc::new(Deadly::default()))
        .route("*".parse().unwrap(), ["sink"])
        .build()
        .unwrap();
    let polls = Arc::new(AtomicU32::new(0));
    let (counted, mut running) = (polls.clone(), Box::pin(relay.run(CancellationToken::new())));
    let counting = tokio::spawn(std::future::poll_fn(move |context| {
        counted.fetch_add(1, Ordering::SeqCst);
        running.as_mut().poll(context)
    }));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = polls.swap(0, Ordering::SeqCst);
    store.faults().delay(Verb::Heartbeat, Duration::from_secs(8));
    tokio::time::sleep(Duration::from_secs(8)).await;
    let meanwhile = polls.load(Ordering::SeqCst);
    assert!(
        meanwhile < 500,
        "{before} in five seconds before, {meanwhile} in eight seconds"
    );
    counting.abort();
}
