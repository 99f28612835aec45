//! What an observer is told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{DeadReason, EmitStore};
use sendoff::{Delivery, Message, Outcome, Sink};
use sendoff_relay::{
    Observer, PublishedBatch, Pulse, Relay, RetryPolicy, SettledBatch, SinkState, TopicPolicy, WakeRung,
};
use sendoff_testkit::MemoryStore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Takes a second for each batch. `never` fails for good, `again` once, `down` makes the sink say that it is down.
struct Slow;

#[async_trait]
impl Sink for Slow {
    async fn publish(&self, batch: &[Arc<Delivery>]) -> Vec<Outcome> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let outcome = |delivery: &Arc<Delivery>| match (delivery.topic.as_str(), delivery.attempts) {
            ("never", _) => Outcome::Permanent("no".into()),
            ("again", 0) => Outcome::Temporary("not yet".into()),
            ("down", _) => Outcome::SinkDown("out".into()),
            _ => Outcome::Delivered,
        };
        batch.iter().map(outcome).collect()
    }
}

#[derive(Default)]
struct Told {
    lines: Mutex<Vec<String>>,
    caught_up: Mutex<Vec<Option<Instant>>>,
    pulses: Mutex<Vec<Pulse>>,
    settled: Mutex<Vec<SettledBatch>>,
}

impl Observer for Told {
    fn published(&self, batch: &PublishedBatch<'_>) {
        assert_eq!(batch.answered - batch.begun, Duration::from_secs(1));
        for message in batch.messages {
            assert!(message.claim.at <= batch.begun);
            assert!(
                message
                    .claim
                    .caught_up
                    .is_none_or(|caught_up| caught_up <= message.claim.at)
            );
            self.caught_up.lock().unwrap().push(message.claim.caught_up);
            let line = format!("{} {} {:?}", batch.sink, message.delivery.topic, message.outcome);
            self.lines.lock().unwrap().push(line);
        }
    }

    fn retried(&self, delivery: &Delivery, leg: &str) {
        self.lines
            .lock()
            .unwrap()
            .push(format!("retried {} at {leg}", delivery.topic));
    }

    fn dead_lettered(&self, delivery: &Delivery, leg: &str, reason: DeadReason) {
        let line = format!("dead {} at {leg}: {}", delivery.topic, reason.as_str());
        self.lines.lock().unwrap().push(line);
    }

    fn settled(&self, settled: &SettledBatch) {
        self.settled.lock().unwrap().push(*settled);
    }

    fn pulse(&self, pulse: &Pulse) {
        self.pulses.lock().unwrap().push(pulse.clone());
    }
}

async fn emit(store: &MemoryStore, topics: &[&str]) {
    let mut tx = store.begin().await.unwrap();
    let messages: Vec<Message> = topics.iter().map(|t| Message::bytes(*t, "text/plain", "x")).collect();
    tx.emit(&messages).await.unwrap();
    tx.commit().await.unwrap();
}

fn relay(store: &Arc<MemoryStore>, told: &Arc<Told>) -> Relay {
    Relay::builder(store.clone())
        .sink("slow", Arc::new(Slow))
        .route("*".parse().unwrap(), ["slow"])
        .default_policy(TopicPolicy {
            retry: RetryPolicy {
                base: Duration::from_secs(5),
                ..RetryPolicy::default()
            },
            ..TopicPolicy::default()
        })
        .observer(told.clone())
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_of_every_outcome_and_of_what_comes_of_it() {
    let store = Arc::new(MemoryStore::new());
    emit(&store, &["fine", "again", "never"]).await;
    let (told, stop) = (Arc::new(Told::default()), CancellationToken::new());
    let running = tokio::spawn(relay(&store, &told).run(stop.clone()));
    // By now `again` has come through, too.
    tokio::time::sleep(Duration::from_secs(20)).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    let mut lines = told.lines.lock().unwrap().clone();
    lines.sort();
    let text = |reason: &str| format!("Reason {{ text: {reason:?}, retry_after: None }}");
    assert_eq!(
        lines,
        [
            "dead never at slow: permanent".to_owned(),
            "retried again at slow".to_owned(),
            "slow again Delivered".to_owned(),
            format!("slow again Temporary({})", text("not yet")),
            "slow fine Delivered".to_owned(),
            format!("slow never Permanent({})", text("no")),
        ]
    );
    let settled: usize = told.settled.lock().unwrap().iter().map(|settled| settled.rows).sum();
    assert_eq!(settled, 4);
    assert!(
        told.caught_up.lock().unwrap()[..3].iter().all(Option::is_none),
        "the first read"
    );
    assert!(
        told.caught_up.lock().unwrap()[3].is_some(),
        "it had caught up long before"
    );
}

#[tokio::test(start_paused = true)]
async fn pulses_tell_what_is_in_hand_and_how_the_sinks_are() {
    let store = Arc::new(MemoryStore::new());
    emit(&store, &["fine", "down"]).await;
    let (told, stop) = (Arc::new(Told::default()), CancellationToken::new());
    let running = tokio::spawn(relay(&store, &told).run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(10)).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    let pulses = told.pulses.lock().unwrap();
    assert!(pulses.len() >= 30, "{} pulses in 10 s", pulses.len());
    let busy = pulses
        .iter()
        .find(|pulse| pulse.in_hand > 0)
        .expect("one while they are with the sink");
    assert_eq!(
        (busy.in_hand, busy.sinks[0].in_hand, &*busy.sinks[0].name),
        (2, 2, "slow")
    );
    assert_eq!(busy.lanes.iter().map(|(_, in_hand)| in_hand).sum::<usize>(), 2);
    assert!(busy.lanes.len() > 2 && busy.relays == 1 && busy.rung != WakeRung::Listen);
    let states: Vec<SinkState> = pulses.iter().map(|pulse| pulse.sinks[0].state).collect();
    assert!(
        states.contains(&SinkState::Up) && states.contains(&SinkState::Down),
        "{states:?}"
    );
    assert!(pulses.iter().any(|pulse| pulse.read.is_some()));
}

/// Panics whenever it can.
struct Bad;

impl Observer for Bad {
    fn published(&self, _: &PublishedBatch<'_>) {
        panic!("on purpose")
    }
    fn pulse(&self, _: &Pulse) {
        panic!("on purpose")
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_changes_nothing() {
    let store = Arc::new(MemoryStore::new());
    emit(&store, &["fine"]).await;
    let relay = Relay::builder(store.clone())
        .sink("slow", Arc::new(Slow))
        .route("*".parse().unwrap(), ["slow"])
        .observer(Arc::new(Bad));
    let relay = relay.build().unwrap();
    let counts = relay.hook_counts();
    let report = relay.run_once(CancellationToken::new()).await.unwrap();
    assert_eq!(report.run.delivered, 1);
    assert!(counts.read().panicked >= 2);
}
