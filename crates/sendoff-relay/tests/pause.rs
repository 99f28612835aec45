//! An operator pauses a sink or a topic under a relay, and lets it go on.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test that is how it fails")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{EmitStore, OperateStore, Pausable, RelayStore, Status, Stored};
use sendoff::{Message, Outcome, Outgoing, Result, Sink, Uuid};
use sendoff_relay::{Relay, RunReport, SinkSettings};
use sendoff_testkit::{MemoryStore, Verb};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Takes its time for a batch, and counts the copies of each message.
struct Counting {
    takes: Duration,
    copies: Mutex<HashMap<Uuid, usize>>,
}

impl Counting {
    fn new(takes: Duration) -> Arc<Self> {
        Arc::new(Self {
            takes,
            copies: Mutex::default(),
        })
    }

    fn count(&self) -> usize {
        self.copies.lock().unwrap().len()
    }

    /// Waits until it has so many, and tells how long that took.
    async fn until(&self, count: usize) -> Duration {
        let began = Instant::now();
        while self.count() < count {
            assert!(began.elapsed() < Duration::from_secs(60), "{} of {count}", self.count());
            sleep(Duration::from_millis(10)).await;
        }
        assert!(self.copies.lock().unwrap().values().all(|copies| *copies == 1));
        began.elapsed()
    }
}

#[async_trait]
impl Sink for Counting {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        sleep(self.takes).await;
        for outgoing in batch {
            *self.copies.lock().unwrap().entry(outgoing.id).or_default() += 1;
        }
        vec![Outcome::Delivered; batch.len()]
    }
}

/// A store whose messages go to two sinks: each is one message with two deliveries.
struct Scene {
    store: Arc<MemoryStore>,
    steady: Arc<Counting>,
    stopped: Arc<Counting>,
}

impl Scene {
    fn new(stopped_takes: Duration) -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            steady: Counting::new(Duration::ZERO),
            stopped: Counting::new(stopped_takes),
        }
    }

    /// A single failed attempt would make them dead letters.
    async fn emit(&self, count: usize) -> Vec<Uuid> {
        let message = |_| Message::bytes("order.placed", "text/plain", "x").max_attempts(1);
        let messages: Vec<Message> = (0..count).map(message).collect();
        let mut tx = self.store.begin().await.unwrap();
        tx.emit(&messages).await.unwrap();
        tx.commit().await.unwrap();
        messages.iter().map(Message::id).collect()
    }

    fn relay(&self) -> Running {
        let relay = Relay::builder(self.store.clone())
            .sink("steady", self.steady.clone())
            .sink("stopped", self.stopped.clone())
            .sink_settings(
                "stopped",
                SinkSettings {
                    batch: 10,
                    concurrency: 1,
                    ..SinkSettings::default()
                },
            )
            .route("*".parse().unwrap(), ["steady", "stopped"])
            .build()
            .unwrap();
        let stop = CancellationToken::new();
        Running(tokio::spawn(relay.run(stop.clone())), stop)
    }

    async fn pause(&self) {
        self.store.pause(&sink(), "ann").await.unwrap();
    }

    async fn resume(&self) {
        self.store.resume(&sink(), "ann").await.unwrap();
    }

    async fn rows(&self, ids: &[Uuid]) -> Vec<Stored> {
        let mut rows = Vec::new();
        for id in ids {
            rows.extend(self.store.find(*id).await.unwrap());
        }
        rows
    }
}

struct Running(JoinHandle<Result<RunReport>>, CancellationToken);

impl Running {
    async fn stop(self) -> RunReport {
        self.1.cancel();
        self.0.await.unwrap().unwrap()
    }
}

fn sink() -> Pausable {
    Pausable::Sink("stopped".into())
}

fn topic() -> Pausable {
    Pausable::Topic("order.*".into())
}

#[tokio::test(start_paused = true)]
async fn a_paused_sink_gets_nothing_holds_up_no_other_and_goes_on_when_it_is_resumed() {
    let scene = Scene::new(Duration::ZERO);
    scene.pause().await;
    let relay = scene.relay();
    let ids = scene.emit(200).await;
    assert!(scene.steady.until(200).await < Duration::from_secs(2));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(scene.stopped.count(), 0);
    let rows = scene.rows(&ids).await;
    assert_eq!(rows.len(), 200, "what the other sink has is settled");
    for row in rows {
        assert_eq!((row.status, row.sink.as_str()), (Status::Deferred, "stopped"));
        assert_eq!(
            (row.attempts, row.last_error.as_deref()),
            (0, Some("the sink is paused"))
        );
    }
    scene.resume().await;
    assert!(scene.stopped.until(200).await < Duration::from_secs(3));
    let report = relay.stop().await;
    assert_eq!((report.dead, scene.steady.until(200).await), (0, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn what_queues_for_a_sink_that_is_paused_is_put_back_and_the_other_deliveries_are_settled() {
    let scene = Scene::new(Duration::from_secs(1));
    let relay = scene.relay();
    let ids = scene.emit(200).await;
    scene.stopped.until(20).await;
    scene.pause().await;
    // What it is given may take a second, and so may the news.
    sleep(Duration::from_secs(3)).await;
    let got = scene.stopped.count();
    assert!(got < 60, "{got} of 200 after the pause");
    assert_eq!(scene.rows(&ids).await.len(), 200 - got);
    assert_eq!(scene.store.backlog().await.unwrap().ready, 0);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(scene.stopped.count(), got);
    // Another relay finds nothing of the first sink's.
    relay.0.abort();
    let next = scene.relay();
    sleep(Duration::from_secs(30)).await;
    assert_eq!(
        (scene.steady.until(200).await, scene.stopped.count()),
        (Duration::ZERO, got)
    );
    scene.resume().await;
    scene.stopped.until(200).await;
    assert_eq!(next.stop().await.dead, 0);
}

#[tokio::test(start_paused = true)]
async fn a_relay_reads_nothing_before_it_knows_what_is_paused() {
    let scene = Scene::new(Duration::ZERO);
    scene.emit(50).await;
    scene.pause().await;
    scene.store.faults().delay(Verb::Paused, Duration::from_secs(3));
    let relay = scene.relay();
    scene.steady.until(50).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(scene.stopped.count(), 0);
    relay.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_goes_on_leaves_no_message_behind() {
    let scene = Scene::new(Duration::ZERO);
    scene.store.pause(&topic(), "ann").await.unwrap();
    let relay = scene.relay();
    scene.emit(100).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!((scene.steady.count(), scene.stopped.count()), (0, 0));
    // Between two heartbeats, so that the relay reads them all before it hears of it.
    sleep(Duration::from_millis(300)).await;
    scene.store.resume(&topic(), "ann").await.unwrap();
    scene.emit(100).await;
    assert!(scene.steady.until(200).await < Duration::from_secs(2));
    assert!(scene.stopped.until(200).await < Duration::from_secs(2));
    assert_eq!(relay.stop().await.dead, 0);
}

#[tokio::test(start_paused = true)]
async fn what_queues_of_a_topic_that_is_paused_is_put_back() {
    let scene = Scene::new(Duration::from_secs(1));
    let relay = scene.relay();
    scene.emit(200).await;
    scene.stopped.until(20).await;
    scene.store.pause(&topic(), "ann").await.unwrap();
    sleep(Duration::from_secs(30)).await;
    let got = scene.stopped.count();
    assert!(got < 60, "{got} of 200 after the pause");
    scene.store.resume(&topic(), "ann").await.unwrap();
    scene.stopped.until(200).await;
    assert_eq!(
        (relay.stop().await.dead, scene.steady.until(200).await),
        (0, Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_put_to_wait_while_their_pause_ends_go_on() {
    let scene = Scene::new(Duration::ZERO);
    scene.store.pause(&topic(), "ann").await.unwrap();
    scene.store.faults().delay(Verb::Settle, Duration::from_secs(3));
    let relay = scene.relay();
    scene.emit(100).await;
    // The settlement is on its way.
    sleep(Duration::from_secs(2)).await;
    assert_eq!(scene.store.backlog().await.unwrap().ready, 100);
    scene.store.resume(&topic(), "ann").await.unwrap();
    assert!(scene.steady.until(100).await < Duration::from_secs(5));
    assert!(scene.stopped.until(100).await < Duration::from_secs(5));
    assert_eq!(relay.stop().await.dead, 0);
}
