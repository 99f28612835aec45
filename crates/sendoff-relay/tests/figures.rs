//! The figures that relays write, under virtual time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test that is how it fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{EmitStore, OperateStore, RelayStatus};
use sendoff::{Message, Outcome, Outgoing, Reason, Sink};
use sendoff_relay::{Relay, RunReport};
use sendoff_testkit::{MemoryStore, Verb};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Takes everything, or is down.
#[derive(Default)]
struct Broker {
    is_down: AtomicBool,
}

#[async_trait]
impl Sink for Broker {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let outcome = if self.is_down.load(Ordering::SeqCst) {
            Outcome::SinkDown(Reason::new("connection refused"))
        } else {
            Outcome::Delivered
        };
        vec![outcome; batch.len()]
    }
}

struct Scene {
    store: MemoryStore,
    broker: Arc<Broker>,
    stop: CancellationToken,
    relay: JoinHandle<sendoff::Result<RunReport>>,
}

impl Scene {
    fn start() -> Self {
        let (store, broker, stop) = (
            MemoryStore::new(),
            Arc::new(Broker::default()),
            CancellationToken::new(),
        );
        let relay = Relay::builder(Arc::new(store.clone()))
            .sink("cache", broker.clone())
            .route("*".parse().unwrap(), ["cache"])
            .build()
            .unwrap();
        let relay = tokio::spawn(relay.run(stop.clone()));
        Self {
            store,
            broker,
            stop,
            relay,
        }
    }

    async fn emit(&self, count: usize) {
        let mut tx = self.store.begin().await.unwrap();
        let messages: Vec<Message> = (0..count)
            .map(|n| Message::bytes("t", "text/plain", n.to_string()))
            .collect();
        tx.emit(&messages).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn seen(&self) -> RelayStatus {
        self.store.overview().await.unwrap().relays.remove(0)
    }

    async fn end(self) -> RunReport {
        self.stop.cancel();
        self.relay.await.unwrap().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_relay_writes_what_it_does_and_how_its_sinks_are() {
    let scene = Scene::start();
    sleep(Duration::from_secs(3)).await;
    scene.emit(600).await;
    sleep(Duration::from_secs(60)).await;
    let seen = scene.seen().await;
    let (_, figures) = seen.figures.clone().unwrap();
    assert_eq!((figures.lanes, figures.in_flight), (seen.lanes, 0));
    for rate in [figures.rates.read, figures.rates.delivered] {
        assert!((9.0..11.0).contains(&rate), "600 in a minute: {figures:?}");
    }
    let (name, _, sink) = &seen.sinks[0];
    assert_eq!((&**name, sink.delivered, sink.failed), ("cache", 600, 0));
    assert_eq!((sink.down_seconds, &sink.last_error), (None, &None));

    scene.broker.is_down.store(true, Ordering::SeqCst);
    scene.emit(50).await;
    sleep(Duration::from_secs(30)).await;
    let seen = scene.seen().await;
    let (_, written_at, sink) = &seen.sinks[0];
    let age = scene.store.now().duration_since(*written_at).unwrap();
    assert!(age <= Duration::from_secs(6), "{age:?}");
    let down = sink.down_seconds.unwrap();
    assert!((20.0..=31.0).contains(&down), "{down} s");
    assert_eq!(sink.last_error.as_deref(), Some("connection refused"));
    assert!(sink.probe_seconds.is_some_and(|probe| probe < 5.0), "{sink:?}");

    // A minute after the last delivery nothing is left of it in the rates.
    sleep(Duration::from_secs(60)).await;
    let (_, figures) = scene.seen().await.figures.unwrap();
    assert!(figures.rates.delivered < 0.01, "{figures:?}");
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn figures_that_cannot_be_written_cost_no_delivery() {
    let scene = Scene::start();
    sleep(Duration::from_secs(2)).await;
    scene.store.faults().fail(Verb::Figures, u32::MAX);
    for _ in 0..10 {
        scene.emit(10).await;
        sleep(Duration::from_secs(1)).await;
    }
    let written_at = scene.seen().await.figures.unwrap().0;
    assert!(
        scene.store.now().duration_since(written_at).unwrap() >= Duration::from_secs(9),
        "they were written"
    );
    // One that hangs neither.
    scene.store.faults().clear();
    scene.store.faults().delay(Verb::Figures, Duration::from_secs(600));
    scene.emit(10).await;
    sleep(Duration::from_secs(20)).await;
    assert_eq!(scene.store.overview().await.unwrap().health.ready, 0);
    let report = scene.end().await;
    assert_eq!(report.delivered, 110);
}

#[tokio::test(start_paused = true)]
async fn figures_come_again_after_an_outage_of_their_own() {
    let scene = Scene::start();
    scene.store.faults().fail(Verb::Figures, 5);
    sleep(Duration::from_secs(30)).await;
    let seen = scene.seen().await;
    assert!(seen.figures.is_some() && seen.sinks.len() == 1, "{seen:#?}");
    scene.end().await;
}
