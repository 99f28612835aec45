//! Messages for two sinks of which one is in trouble: the other gets all of them, at once and once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test that is how it fails")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::EmitStore as _;
use sendoff::{Message, Outcome, Outgoing, Sink, Uuid};
use sendoff_relay::{Relay, RetryPolicy, Settings, SinkSettings, TopicPolicy};
use sendoff_testkit::MemoryStore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const MESSAGES: usize = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    Down,
    /// It never answers.
    Silent,
    /// It takes a second for ten.
    Slow,
}

/// In trouble until it is told otherwise. Counts the copies of each message.
struct Troubled {
    trouble: Trouble,
    over: AtomicBool,
    copies: Mutex<HashMap<Uuid, usize>>,
}

impl Troubled {
    fn new(trouble: Trouble) -> Arc<Self> {
        Arc::new(Self {
            trouble,
            over: AtomicBool::new(trouble == Trouble::None),
            copies: Mutex::default(),
        })
    }

    fn count(&self) -> usize {
        self.copies.lock().unwrap().len()
    }

    async fn until_all(&self, within: Duration) {
        let began = Instant::now();
        while self.count() < MESSAGES {
            assert!(
                began.elapsed() < within,
                "{} of {MESSAGES} after {within:?}",
                self.count()
            );
            sleep(Duration::from_millis(50)).await;
        }
    }
}

#[async_trait]
impl Sink for Troubled {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        if !self.over.load(Ordering::SeqCst) {
            match self.trouble {
                Trouble::None => {}
                Trouble::Down => return vec![Outcome::SinkDown("no broker".into()); batch.len()],
                Trouble::Silent => std::future::pending().await,
                Trouble::Slow => sleep(Duration::from_secs(1)).await,
            }
        }
        for outgoing in batch {
            *self.copies.lock().unwrap().entry(outgoing.id).or_default() += 1;
        }
        vec![Outcome::Delivered; batch.len()]
    }
}

async fn holds_up_nobody(trouble: Trouble) {
    let store = Arc::new(MemoryStore::new());
    let message = |n: usize| {
        let message = Message::bytes("t", "text/plain", "x");
        // Every other one has one more of its key behind it.
        if n.is_multiple_of(2) {
            message
        } else {
            message.key((n / 4).to_string())
        }
    };
    let messages: Vec<Message> = (0..MESSAGES).map(message).collect();
    let mut tx = store.begin().await.unwrap();
    tx.emit(&messages).await.unwrap();
    tx.commit().await.unwrap();

    let (troubled, quick) = (Troubled::new(trouble), Troubled::new(Trouble::None));
    let retry = RetryPolicy {
        base: Duration::from_secs(1),
        attempts: 100,
        ..RetryPolicy::default()
    };
    let relay = Relay::builder(store.clone())
        .sink("troubled", troubled.clone())
        .sink("quick", quick.clone())
        .sink_settings(
            "troubled",
            SinkSettings {
                batch: 10,
                concurrency: 1,
                timeout: Duration::from_secs(20),
                rate: None,
            },
        )
        .route("*".parse().unwrap(), ["troubled", "quick"])
        .default_policy(TopicPolicy {
            retry,
            ..TopicPolicy::default()
        })
        // Room for a tenth of them.
        .settings(Settings {
            batch: 50,
            max_in_flight: 200,
            ..Settings::default()
        })
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    // Long before the first batch of the silent one is given up.
    quick.until_all(Duration::from_secs(10)).await;
    assert!(troubled.count() < MESSAGES / 10, "{}", troubled.count());
    troubled.over.store(true, Ordering::SeqCst);
    troubled.until_all(Duration::from_secs(300)).await;
    stop.cancel();
    assert_eq!(running.await.unwrap().unwrap().dead, 0);
    assert!(
        quick.copies.lock().unwrap().values().all(|copies| *copies == 1),
        "a delivery that was delivered is never sent again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_down_does_not_hold_up_the_other_deliveries_of_its_messages() {
    holds_up_nobody(Trouble::Down).await;
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_never_answers_does_not_hold_up_the_other_deliveries_of_its_messages() {
    holds_up_nobody(Trouble::Silent).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_sink_does_not_hold_up_the_other_deliveries_of_its_messages() {
    holds_up_nobody(Trouble::Slow).await;
}
