//! A broker with a memory alarm, and a relay.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Backlog, EmitStore as _, RelayStore as _};
use sendoff::{Message, Uuid};
use sendoff_relay::{Observer, Relay, RelayHealth, SinkState};
use sendoff_testkit::MemoryStore;
use sendoff_testkit::servers::RabbitMq;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

mod broker;
use broker::{Consumer, sink, to_queues};

/// How soon the relay must notice that a broker is unusable, and that it is usable again.
const SOON: Duration = Duration::from_secs(5);

/// The state of the sink in the relay.
struct Breaker(watch::Sender<SinkState>);

impl Observer for Breaker {
    fn relay_health(&self, relay_health: &RelayHealth) {
        let state = relay_health.sinks[0].state;
        self.0
            .send_if_modified(|known| std::mem::replace(known, state) != state);
    }
}

async fn emit(store: &MemoryStore, queue: &str, count: usize) -> Vec<Uuid> {
    // A single failed attempt would make them dead letters.
    let messages: Vec<Message> = (0..count)
        .map(|n| Message::json(queue, &n).unwrap().max_attempts(1))
        .collect();
    let mut tx = store.begin().await.unwrap();
    tx.emit(&messages).await.unwrap();
    tx.commit().await.unwrap();
    messages.iter().map(Message::id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_notices_a_memory_alarm_within_seconds_and_goes_on_when_it_ends() {
    let broker = RabbitMq::start().await;
    let consumer = Consumer::connect(&broker.url()).await;
    let queue = consumer.queue(&[]).await;
    let store = MemoryStore::new();
    let (breaker, mut state) = watch::channel(SinkState::Up);
    let relay = Relay::builder(Arc::new(store.clone()))
        .sink("rabbit", Arc::new(sink(to_queues(&broker.url()))))
        .route("*".parse().unwrap(), ["rabbit"])
        .observer(Arc::new(Breaker(breaker)))
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    let mut emitted = Vec::new();

    // Messages are emitted before and during the alarm.
    let alarm = async {
        broker.memory_alarm(true).await;
        let raised = Instant::now();
        timeout(SOON, state.wait_for(|state| *state == SinkState::Down))
            .await
            .unwrap()
            .unwrap();
        sleep((raised + Duration::from_secs(6)).saturating_duration_since(Instant::now())).await;
        assert_eq!(
            *state.borrow(),
            SinkState::Down,
            "the sink must stay down during the alarm"
        );
        broker.memory_alarm(false).await;
        timeout(SOON, state.wait_for(|state| *state != SinkState::Down))
            .await
            .unwrap()
            .unwrap();
    };
    let traffic = async {
        loop {
            emitted.extend(emit(&store, &queue, 20).await);
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = alarm => {}
        () = traffic => {}
    }
    let ended = Instant::now();
    while store.backlog().await.unwrap() != Backlog::default() {
        assert!(ended.elapsed() < SOON, "{:?}", store.backlog().await);
        sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.dead, report.delivered), (0, emitted.len() as u64));
    let arrived: HashSet<String> = consumer.drain(&queue).await.into_iter().collect();
    assert_eq!(arrived, emitted.iter().map(Uuid::to_string).collect());
}
