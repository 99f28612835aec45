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
use sendoff::{Message, Outcome, Outgoing, Sink};
use sendoff_relay::{
    Observer, PublishedBatch, Relay, RelayHealth, RetryPolicy, RunReport, SettledBatch, SinkState, TopicPolicy,
    WakeSource,
};
use sendoff_testkit::MemoryStore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Takes a second for each batch. `never` fails for good, `again` once, `down` makes the sink say that it is down.
struct Slow;

#[async_trait]
impl Sink for Slow {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let outcome = |outgoing: &Arc<Outgoing>| match (outgoing.topic.as_str(), outgoing.attempts) {
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
    relay_healths: Mutex<Vec<RelayHealth>>,
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
            let line = format!("{} {} {:?}", batch.sink, message.outgoing.topic, message.outcome);
            self.lines.lock().unwrap().push(line);
        }
    }

    fn retried(&self, outgoing: &Outgoing, sink: &str) {
        self.lines
            .lock()
            .unwrap()
            .push(format!("retried {} at {sink}", outgoing.topic));
    }

    fn dead_lettered(&self, outgoing: &Outgoing, sink: &str, reason: DeadReason) {
        let line = format!("dead {} at {sink}: {}", outgoing.topic, reason.as_str());
        self.lines.lock().unwrap().push(line);
    }

    fn settled(&self, settled: &SettledBatch) {
        self.settled.lock().unwrap().push(*settled);
    }

    fn relay_health(&self, relay_health: &RelayHealth) {
        self.relay_healths.lock().unwrap().push(relay_health.clone());
    }
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
    store.emit_topics(&["fine", "again", "never"]).await.unwrap();
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
async fn health_tell_what_is_in_flight_and_how_the_sinks_are() {
    let store = Arc::new(MemoryStore::new());
    store.emit_topics(&["fine", "down"]).await.unwrap();
    let (told, stop) = (Arc::new(Told::default()), CancellationToken::new());
    let running = tokio::spawn(relay(&store, &told).run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(10)).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    let relay_healths = told.relay_healths.lock().unwrap();
    assert!(
        relay_healths.len() >= 30,
        "{} health reports in 10 s",
        relay_healths.len()
    );
    let busy = relay_healths
        .iter()
        .find(|relay_health| relay_health.in_flight > 0)
        .expect("one while they are with the sink");
    assert_eq!(
        (busy.in_flight, busy.sinks[0].in_flight, &*busy.sinks[0].name),
        (2, 2, "slow")
    );
    assert_eq!(busy.lanes.iter().map(|(_, in_flight)| in_flight).sum::<usize>(), 2);
    assert!(busy.lanes.len() > 2 && busy.relays == 1 && busy.wake_source != WakeSource::Listen);
    let states: Vec<SinkState> = relay_healths
        .iter()
        .map(|relay_health| relay_health.sinks[0].state)
        .collect();
    assert!(
        states.contains(&SinkState::Up) && states.contains(&SinkState::Down),
        "{states:?}"
    );
    assert!(relay_healths.iter().any(|relay_health| relay_health.read.is_some()));
}

/// Two sinks and a failed head: the report and the observer count the same, each in one unit.
#[tokio::test(start_paused = true)]
async fn the_report_counts_what_an_observer_hears() {
    let store = Arc::new(MemoryStore::new());
    let mut tx = store.begin().await.unwrap();
    let keyed = ["again", "fine", "fine", "fine"].map(|topic| Message::bytes(topic, "text/plain", "x").key("k"));
    tx.emit(&keyed).await.unwrap();
    tx.emit(&[Message::bytes("never", "text/plain", "x")]).await.unwrap();
    tx.commit().await.unwrap();
    let (told, stop) = (Arc::new(Told::default()), CancellationToken::new());
    let relay = Relay::builder(store.clone())
        .sink("one", Arc::new(Slow))
        .sink("other", Arc::new(Slow))
        .route("*".parse().unwrap(), ["one", "other"])
        .observer(told.clone());
    let running = tokio::spawn(relay.build().unwrap().run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(600)).await;
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    let expected = RunReport {
        delivered: 8,
        retried: 2,
        deferred: 0,
        dead: 2,
    };
    assert_eq!(
        report, expected,
        "four messages, two deliveries each; blocked ones are not retried"
    );
    let heard = |what: &str| {
        let lines = told.lines.lock().unwrap();
        lines.iter().filter(|line| line.contains(what)).count() as u64
    };
    let counts = (heard("Delivered"), heard("retried "), heard("dead "));
    assert_eq!(counts, (report.delivered, report.retried, report.dead));
}

/// A sink that is down charges no attempt: its deliveries are deferred.
#[tokio::test(start_paused = true)]
async fn what_is_deferred_is_not_retried() {
    let store = Arc::new(MemoryStore::new());
    store.emit_topics(&["down", "down", "down"]).await.unwrap();
    let (told, stop) = (Arc::new(Told::default()), CancellationToken::new());
    let running = tokio::spawn(relay(&store, &told).run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(30)).await;
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.delivered, report.retried, report.dead), (0, 0, 0));
    assert!(
        report.deferred >= 3 && report.processed() == report.deferred,
        "{report:?}"
    );
    assert!(
        !told
            .lines
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.starts_with("retried"))
    );
}

/// Panics whenever it can.
struct Bad;

impl Observer for Bad {
    fn published(&self, _: &PublishedBatch<'_>) {
        panic!("on purpose")
    }
    fn relay_health(&self, _: &RelayHealth) {
        panic!("on purpose")
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_changes_nothing() {
    let store = Arc::new(MemoryStore::new());
    store.emit_topics(&["fine"]).await.unwrap();
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
