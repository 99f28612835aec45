//! Hooks and middleware: the application listens and steps in, and whatever it does, messages are delivered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{DeadReason, EmitStore};
use sendoff::{Message, Outcome, Outgoing, Sink};
use sendoff_relay::{
    AsyncHooks, DeadLetter, HookFailures, HookResult, Hooks, Middleware, Next, Relay, RelayBuilder, SinkSettings,
};
use sendoff_testkit::MemoryStore;
use tokio_util::sync::CancellationToken;

/// Refuses `never` for good and delivers the rest.
#[derive(Default)]
struct Post(Mutex<Vec<String>>);

#[async_trait]
impl Sink for Post {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let outcome = |outgoing: &Arc<Outgoing>| {
            self.0.lock().unwrap().push(outgoing.topic.clone());
            match outgoing.topic.as_str() {
                "never" => Outcome::Permanent("no".into()),
                _ => Outcome::Delivered,
            }
        };
        batch.iter().map(outcome).collect()
    }
}

async fn store_with(topics: &[&str]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let mut tx = store.begin().await.unwrap();
    let messages: Vec<Message> = topics.iter().map(|t| Message::bytes(*t, "text/plain", "x")).collect();
    tx.emit(&messages).await.unwrap();
    tx.commit().await.unwrap();
    store
}

fn relay(store: &Arc<MemoryStore>, sink: &Arc<Post>) -> RelayBuilder {
    Relay::builder(store.clone())
        .sink("post", sink.clone())
        .route("*".parse().unwrap(), ["post"])
}

/// Fails in every way there is.
#[derive(Default)]
struct Bad(AtomicUsize);

impl Hooks for Bad {
    fn sent(&self, _: &Arc<Outgoing>, _: &str) -> HookResult {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => panic!("on purpose"),
            _ => Err("on purpose".into()),
        }
    }

    fn dead_lettered(&self, _: &Arc<Outgoing>, _: &str, _: DeadReason, _: &str) -> HookResult {
        panic!("on purpose")
    }

    fn dead_lettered_batch(&self, _: &[DeadLetter]) -> HookResult {
        Err("on purpose".into())
    }
}

#[tokio::test(start_paused = true)]
async fn errors_and_panics_in_hooks_are_counted_and_every_message_is_delivered() {
    let store = store_with(&["a", "b", "c", "never"]).await;
    let sink = Arc::new(Post::default());
    let relay = relay(&store, &sink).hooks(Arc::new(Bad::default())).build().unwrap();
    let counts = relay.hook_counts();
    let report = relay.run_once(CancellationToken::new()).await.unwrap();
    assert_eq!((report.run.delivered, report.run.dead), (3, 1));
    assert_eq!(report.remaining.ready, 0);
    let expected = HookFailures {
        failed: 3,
        panicked: 2,
        dropped: 0,
    };
    assert_eq!(counts.read(), expected);
}

#[derive(Default)]
struct Batches(Mutex<Vec<Vec<(String, DeadReason)>>>);

impl Hooks for Batches {
    fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
        let batch = dead.iter().map(|dead| (dead.outgoing.topic.clone(), dead.reason));
        self.0.lock().unwrap().push(batch.collect());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn dead_letters_that_are_written_at_once_are_told_at_once() {
    let store = store_with(&["never", "a", "never", "never"]).await;
    let sink = Arc::new(Post::default());
    let hooks = Arc::new(Batches::default());
    let relay = relay(&store, &sink).hooks(hooks.clone()).build().unwrap();
    relay.run_once(CancellationToken::new()).await.unwrap();
    let batches = hooks.0.lock().unwrap();
    assert_eq!(*batches, [vec![("never".to_owned(), DeadReason::Permanent); 3]]);
}

/// Takes a second a call, and panics on the first.
#[derive(Default)]
struct Slow {
    told: Mutex<Vec<String>>,
    calls: AtomicUsize,
}

#[async_trait]
impl AsyncHooks for Slow {
    async fn sent(&self, outgoing: &Arc<Outgoing>, sink: &str) -> HookResult {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            panic!("on purpose");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.told.lock().unwrap().push(format!("{sink} {}", outgoing.topic));
        Ok(())
    }

    async fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
        self.told.lock().unwrap().push(format!("{} dead", dead.len()));
        Err("on purpose".into())
    }
}

#[tokio::test(start_paused = true)]
async fn asynchronous_hooks_run_beside_the_relay_and_are_waited_for_at_the_end() {
    let store = store_with(&["a", "a", "a", "never"]).await;
    let sink = Arc::new(Post::default());
    let hooks = Arc::new(Slow::default());
    let relay = relay(&store, &sink).async_hooks(hooks.clone()).build().unwrap();
    let counts = relay.hook_counts();
    let report = relay.run_once(CancellationToken::new()).await.unwrap();
    assert_eq!((report.run.delivered, report.run.dead), (3, 1));
    assert_eq!(*hooks.told.lock().unwrap(), ["post a", "post a", "1 dead"]);
    let expected = HookFailures {
        failed: 1,
        panicked: 1,
        dropped: 0,
    };
    assert_eq!(counts.read(), expected);
}

/// Never comes back.
struct Hangs;

#[async_trait]
impl AsyncHooks for Hangs {
    async fn sent(&self, _: &Arc<Outgoing>, _: &str) -> HookResult {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_holds_up_nothing_and_what_it_misses_is_counted() {
    let store = store_with(&["a"; 12_000]).await;
    let sink = Arc::new(Post::default());
    let relay = relay(&store, &sink).async_hooks(Arc::new(Hangs)).build().unwrap();
    let counts = relay.hook_counts();
    let report = relay.run_once(CancellationToken::new()).await.unwrap();
    assert_eq!(report.run.delivered, 12_000);
    let dropped = counts.read().dropped;
    assert!(
        (1_900..=2_000).contains(&dropped),
        "{dropped} of 12000 calls were dropped"
    );
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
        .sink_settings(
            "post",
            SinkSettings {
                concurrency: 1,
                ..SinkSettings::default()
            },
        )
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
