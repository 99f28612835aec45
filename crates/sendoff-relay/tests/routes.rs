//! Relays with different routes on one store.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test that is how it fails")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{EmitStore, OperateStore, RelayStore};
use sendoff::{Message, Outcome, Outgoing, Sink};
use sendoff_relay::Relay;
use sendoff_testkit::MemoryStore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Counts what it gets.
#[derive(Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl Sink for Counting {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        self.0.fetch_add(batch.len(), Ordering::Relaxed);
        vec![Outcome::Delivered; batch.len()]
    }
}

struct Scene {
    store: Arc<MemoryStore>,
    sink: Arc<Counting>,
    stop: CancellationToken,
    ended: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

impl Scene {
    fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            sink: Arc::default(),
            stop: CancellationToken::new(),
            ended: Mutex::default(),
        }
    }

    fn start(&self, topics: &[&str]) {
        let mut relay = Relay::builder(self.store.clone()).sink("a", self.sink.clone());
        for topic in topics {
            relay = relay.route(topic.parse().unwrap(), ["a"]);
        }
        let run = relay.build().unwrap().run(self.stop.clone());
        let ended = tokio::spawn(async move {
            assert_eq!(run.await.unwrap().dead, 0);
        });
        self.ended.lock().unwrap().push(ended);
    }

    /// How many lanes each relay has, the fewest first.
    async fn shares(&self) -> Vec<usize> {
        let views = self.store.lane_views().await.unwrap();
        let mut owners: Vec<_> = views.iter().filter_map(|view| view.owner).collect();
        owners.sort_unstable();
        let mut shares: Vec<usize> = owners.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
        shares.sort_unstable();
        shares
    }

    async fn emit(&self, topic: &str, count: usize) {
        let mut tx = self.store.begin().await.unwrap();
        for n in 0..count {
            let message = Message::bytes(topic, "text/plain", "x").key(format!("{topic} {n}"));
            tx.emit(&[message]).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    async fn until(&self, count: usize) -> Duration {
        let began = Instant::now();
        while self.sink.0.load(Ordering::Relaxed) < count {
            assert!(
                began.elapsed() < Duration::from_secs(600),
                "{:?} of {count}",
                self.sink.0
            );
            sleep(Duration::from_millis(100)).await;
        }
        began.elapsed()
    }

    async fn stop(self) {
        self.stop.cancel();
        for ended in self.ended.into_inner().unwrap() {
            ended.await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_reach_the_only_relay_that_has_a_route_for_them_and_lanes_stay_shared() {
    let scene = Scene::new();
    let lanes = usize::from(scene.store.lanes());
    scene.start(&["old.*"]);
    scene.start(&["old.*", "new.*"]);
    while scene.shares().await != [lanes / 2, lanes / 2] {
        sleep(Duration::from_millis(100)).await;
    }
    // In every lane.
    scene.emit("new.topic", 300).await;
    let took = scene.until(300).await;
    assert!(took < Duration::from_secs(240), "{took:?}");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(scene.shares().await, [lanes / 2, lanes / 2]);
    // Those that both have a route for do not wait.
    scene.emit("old.topic", 300).await;
    assert!(scene.until(600).await < Duration::from_secs(5));
    scene.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lanes_stay_where_they_are_when_messages_for_another_relay_come_all_the_time() {
    let scene = Scene::new();
    scene.start(&["old.*"]);
    scene.start(&["old.*", "new.*"]);
    let mut changes = 0;
    let mut epochs = Vec::new();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(600) {
        scene.emit("new.topic", 20).await;
        sleep(Duration::from_secs(1)).await;
        let views = scene.store.lane_views().await.unwrap();
        let now: Vec<_> = views.iter().map(|view| view.owner).collect();
        changes += now.iter().zip(&epochs).filter(|(new, old)| new != old).count();
        epochs = now;
    }
    // Eight lanes a minute, there and back, and those of the beginning.
    assert!(changes < 600, "{changes} changes of hands in ten minutes");
    scene.stop().await;
}
