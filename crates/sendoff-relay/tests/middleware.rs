//! Middleware around the sinks: what it sees of a sink that misbehaves, and what it can do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test that is how it fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::sink::{Middleware, Next};
use sendoff::store::{Backlog, RelayStore};
use sendoff::{Outcome, Outgoing, Sink};
use sendoff_relay::{Relay, RelayBuilder, RetryPolicy, SinkSettings, TopicPolicy};
use sendoff_testkit::MemoryStore;
use tokio_util::sync::CancellationToken;

/// Fails, hangs, panics or miscounts at the first attempt of these topics, and delivers the rest.
#[derive(Default)]
struct Post(Mutex<Vec<String>>);

#[async_trait]
impl Sink for Post {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let topics = batch.iter().map(|outgoing| outgoing.topic.clone());
        let before = self.0.lock().unwrap().clone();
        self.0.lock().unwrap().extend(topics);
        let first = |topic: &str| {
            let is_first = !before.iter().any(|seen| seen == topic);
            is_first && batch.iter().any(|outgoing| outgoing.topic == topic)
        };
        if first("hangs") {
            std::future::pending::<()>().await;
        }
        assert!(!first("panics"), "on purpose");
        if first("miscounts") {
            return Vec::new();
        }
        let outcome = |outgoing: &Arc<Outgoing>| match outgoing.topic.as_str() {
            "flaky" if first("flaky") => Outcome::Temporary("busy".into()),
            _ => Outcome::Delivered,
        };
        batch.iter().map(outcome).collect()
    }
}

async fn store_with(topics: &[&str]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    store.emit_topics(topics).await.unwrap();
    store
}

/// One batch at a time, and quick retries.
fn relay(store: &Arc<MemoryStore>, sink: &Arc<Post>) -> RelayBuilder {
    Relay::builder(store.clone())
        .sink("post", sink.clone())
        .sink_settings(
            "post",
            SinkSettings {
                concurrency: 1,
                timeout: Duration::from_secs(5),
                ..SinkSettings::default()
            },
        )
        .route("*".parse().unwrap(), ["post"])
        .default_policy(TopicPolicy {
            retry: RetryPolicy {
                base: Duration::from_millis(10),
                ..RetryPolicy::default()
            },
            ..TopicPolicy::default()
        })
}

/// Runs until nothing is left.
async fn run(store: &Arc<MemoryStore>, relay: RelayBuilder) {
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.build().unwrap().run(stop.clone()));
    while store.backlog().await.unwrap() != Backlog::default() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// Notes every attempt with its outcome.
#[derive(Default)]
struct Notebook(Mutex<Vec<String>>);

#[async_trait]
impl Middleware for Notebook {
    async fn publish(&self, batch: &[Arc<Outgoing>], next: Next<'_>) -> Vec<Outcome> {
        let outcomes = next.publish(batch).await;
        let notes = batch.iter().zip(&outcomes).map(|(outgoing, outcome)| {
            let (topic, attempts) = (&outgoing.topic, outgoing.attempts);
            let text = match outcome {
                Outcome::Temporary(reason) | Outcome::Unknown(reason) => reason.text(),
                Outcome::Delivered => "delivered",
                other => panic!("{other:?}"),
            };
            format!("{topic} {} {attempts} {text}", next.sink())
        });
        self.0.lock().unwrap().extend(notes);
        outcomes
    }
}

async fn noted(topics: &[&str]) -> Vec<String> {
    let (store, sink, notes) = (store_with(topics).await, Arc::default(), Arc::new(Notebook::default()));
    run(&store, relay(&store, &sink).middleware(notes.clone())).await;
    let mut notes = notes.0.lock().unwrap().clone();
    notes.sort();
    notes
}

#[tokio::test(start_paused = true)]
async fn middleware_sees_every_attempt_with_its_outcome() {
    let notes = noted(&["flaky", "steady"]).await;
    assert_eq!(
        notes,
        ["flaky post 0 busy", "flaky post 1 delivered", "steady post 0 delivered"]
    );
}

#[tokio::test(start_paused = true)]
async fn middleware_sees_the_outcome_of_a_sink_that_hangs_panics_or_miscounts() {
    let unanswered = "hangs post 0 the sink gave no answer within 5s";
    assert_eq!(noted(&["hangs"]).await, ["hangs post 0 delivered", unanswered]);
    assert_eq!(
        noted(&["panics"]).await,
        ["panics post 0 the sink panicked", "panics post 1 delivered"]
    );
    let short = "miscounts post 0 the sink answered for 0 of 1 messages";
    assert_eq!(noted(&["miscounts"]).await, [short, "miscounts post 1 delivered"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_panic_with_a_batch_middleware_sees_each_message_alone() {
    // The panic was in the first call, so each of the two succeeds alone.
    let notes = noted(&["panics", "steady"]).await;
    assert_eq!(notes, ["panics post 0 delivered", "steady post 0 delivered"]);
}

/// Hangs or panics at the first attempt of a message, before its sink.
struct Bad;

#[async_trait]
impl Middleware for Bad {
    async fn publish(&self, batch: &[Arc<Outgoing>], next: Next<'_>) -> Vec<Outcome> {
        for outgoing in batch {
            match (outgoing.topic.as_str(), outgoing.attempts) {
                ("stuck", _) => std::future::pending().await,
                ("bad", 0) => panic!("on purpose"),
                _ => {}
            }
        }
        next.publish(batch).await
    }
}

#[tokio::test(start_paused = true)]
async fn middleware_that_panics_fails_its_message_and_no_other() {
    let (store, sink) = (
        store_with(&["bad", "steady", "steady"]).await,
        Arc::new(Post::default()),
    );
    run(&store, relay(&store, &sink).middleware(Arc::new(Bad))).await;
    assert_eq!(*sink.0.lock().unwrap(), ["steady", "steady", "bad"]);
}

#[tokio::test(start_paused = true)]
async fn middleware_that_hangs_has_a_second_more_than_its_sink() {
    let (store, sink) = (store_with(&["stuck"]).await, Arc::new(Post::default()));
    let begun = tokio::time::Instant::now();
    let relay = relay(&store, &sink).middleware(Arc::new(Bad)).build().unwrap();
    let report = relay.run_once(CancellationToken::new()).await.unwrap();
    assert_eq!((report.run.delivered, report.run.deferred), (0, 1));
    let took = begun.elapsed();
    assert!((6..8).contains(&took.as_secs()), "{took:?}");
    assert!(sink.0.lock().unwrap().is_empty());
}

/// Writes down what passes, and keeps `secret` to itself.
struct Guard {
    name: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Middleware for Guard {
    async fn publish(&self, batch: &[Arc<Outgoing>], next: Next<'_>) -> Vec<Outcome> {
        let line = format!("{} before {} of {}", self.name, batch.len(), next.sink());
        self.seen.lock().unwrap().push(line);
        let is_secret = |outgoing: &&Arc<Outgoing>| outgoing.topic == "secret";
        let open: Vec<_> = batch.iter().filter(|outgoing| !is_secret(outgoing)).cloned().collect();
        let mut outcomes = next.publish(&open).await.into_iter();
        self.seen.lock().unwrap().push(format!("{} after", self.name));
        batch
            .iter()
            .map(|outgoing| match is_secret(&outgoing) {
                true => Outcome::Permanent("secret".into()),
                false => outcomes.next().unwrap(),
            })
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn middleware_stands_around_the_sink_in_the_order_it_was_added() {
    let store = store_with(&["a", "secret"]).await;
    let (sink, seen) = (Arc::new(Post::default()), Arc::default());
    let guard = |name| {
        let seen = Arc::clone(&seen);
        Arc::new(Guard { name, seen })
    };
    let relay = relay(&store, &sink)
        .middleware(guard("outer"))
        .middleware(guard("inner"))
        .build()
        .unwrap();
    let report = relay.run_once(CancellationToken::new()).await.unwrap();
    assert_eq!((report.run.delivered, report.run.dead), (1, 1));
    assert_eq!(*sink.0.lock().unwrap(), ["a"]);
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "outer before 2 of post",
            "inner before 1 of post",
            "inner after",
            "outer after"
        ]
    );
}
