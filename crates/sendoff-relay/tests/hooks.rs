//! Hooks: the application listens, and whatever it does, messages are delivered.
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
use sendoff::store::DeadReason;
use sendoff::{Outcome, Outgoing, Sink};
use sendoff_relay::{DeadLetter, HookFailures, HookResult, Hooks, Relay, RelayBuilder};
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
    store.emit_topics(topics).await.unwrap();
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

#[async_trait]
impl Hooks for Bad {
    async fn sent(&self, _: &Arc<Outgoing>, _: &str) -> HookResult {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => panic!("on purpose"),
            _ => Err("on purpose".into()),
        }
    }

    async fn dead_lettered(&self, _: &Arc<Outgoing>, _: &str, _: DeadReason, _: &str) -> HookResult {
        panic!("on purpose")
    }

    async fn dead_lettered_batch(&self, _: &[DeadLetter]) -> HookResult {
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

#[async_trait]
impl Hooks for Batches {
    async fn dead_lettered_batch(&self, dead: &[DeadLetter]) -> HookResult {
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
impl Hooks for Slow {
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
async fn hooks_run_beside_the_relay_and_are_waited_for_at_the_end() {
    let store = store_with(&["a", "a", "a", "never"]).await;
    let sink = Arc::new(Post::default());
    let hooks = Arc::new(Slow::default());
    let relay = relay(&store, &sink).hooks(hooks.clone()).build().unwrap();
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
impl Hooks for Hangs {
    async fn sent(&self, _: &Arc<Outgoing>, _: &str) -> HookResult {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_holds_up_nothing_and_what_it_misses_is_counted() {
    let store = store_with(&["a"; 12_000]).await;
    let sink = Arc::new(Post::default());
    let relay = relay(&store, &sink).hooks(Arc::new(Hangs)).build().unwrap();
    let counts = relay.hook_counts();
    let report = relay.run_once(CancellationToken::new()).await.unwrap();
    assert_eq!(report.run.delivered, 12_000);
    let dropped = counts.read().dropped;
    assert!(
        (1_900..=2_000).contains(&dropped),
        "{dropped} of 12000 calls were dropped"
    );
}
