//! Those who follow messages, on a relay in a simulator.
#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test that is how it fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sendoff::context::{DeliveryTracer, TracedAttempt};
use sendoff::store::{Backlog, EmitStore, RelayStore};
use sendoff::{Message, Outcome, Outgoing};
use sendoff_relay::{Relay, RetryPolicy, TopicPolicy};
use sendoff_testkit::{Act, MemoryStore, ScriptedSink};
use tokio_util::sync::CancellationToken;

type Notes = Arc<Mutex<Vec<String>>>;

/// Follows all but `unseen`, and panics at `panic`.
struct Notebook(Notes);

struct Page(Notes, String);

impl DeliveryTracer for Notebook {
    fn publishing(&self, outgoing: &Outgoing, sink: &str) -> Option<Box<dyn TracedAttempt>> {
        assert_ne!(outgoing.topic, "panic", "on purpose");
        let page = format!("{} {sink} {}", outgoing.topic, outgoing.attempts);
        (outgoing.topic != "unseen").then(|| Box::new(Page(self.0.clone(), page)) as Box<dyn TracedAttempt>)
    }
}

impl TracedAttempt for Page {
    fn answered(self: Box<Self>, outcome: &Outcome) {
        self.0.lock().unwrap().push(format!("{} {outcome:?}", self.1));
        assert_ne!(self.1, "late b 0", "on purpose");
    }
}

async fn relayed(topics: &[&str]) -> (Arc<ScriptedSink>, Vec<String>) {
    let store = Arc::new(MemoryStore::new());
    let mut tx = store.begin().await.unwrap();
    let messages: Vec<Message> = topics
        .iter()
        .map(|topic| Message::bytes(*topic, "text/plain", "x"))
        .collect();
    tx.emit(&messages).await.unwrap();
    tx.commit().await.unwrap();
    let script = |outgoing: &Outgoing, copy: u32| match (outgoing.topic.as_str(), copy) {
        ("flaky", 1) => Act::Refuse(Outcome::Temporary("busy".into())),
        _ => Act::Deliver,
    };
    let sink = Arc::new(ScriptedSink::new().script(script));
    let notes = Notes::default();
    let retry = RetryPolicy {
        base: Duration::from_millis(10),
        ..RetryPolicy::default()
    };
    let relay = Relay::builder(store.clone())
        .sink("b", sink.clone())
        .route("*".parse().unwrap(), ["b"])
        .default_policy(TopicPolicy {
            retry,
            ..TopicPolicy::default()
        })
        .tracer(Arc::new(Notebook(notes.clone())))
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    while store.backlog().await.unwrap() != Backlog::default() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    running.await.unwrap().unwrap();
    let mut notes = notes.lock().unwrap().clone();
    notes.sort();
    (sink, notes)
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_told_with_its_outcome_and_retries_are_known() {
    let (_, notes) = relayed(&["flaky", "steady", "unseen"]).await;
    let busy = r#"flaky b 0 Temporary(Reason { text: "busy", retry_after: None })"#;
    assert_eq!(notes, [busy, "flaky b 1 Delivered", "steady b 0 Delivered"]);
}

#[tokio::test(start_paused = true)]
async fn one_who_panics_does_not_stop_the_relay() {
    let (sink, notes) = relayed(&["panic", "late", "steady"]).await;
    assert_eq!(sink.publications().len(), 3);
    assert_eq!(notes, ["late b 0 Delivered", "steady b 0 Delivered"]);
}
