//! An operator at work beside a relay.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test that is how it fails")]

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{EmitStore, RelayStore};
use sendoff::{Message, Outcome, Pattern};
use sendoff_operate::Operator;
use sendoff_relay::Relay;
use sendoff_testkit::{Act, MemoryStore, ScriptedSink, Verb};
use tokio_util::sync::CancellationToken;

/// More than one step of an operator takes.
const LETTERS: u64 = 2500;

async fn until_dead(store: &MemoryStore, letters: u64) {
    while store.backlog().await.unwrap().dead < letters {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn retrying_all_ends_though_a_sink_refuses_all_of_them_again() {
    let store = MemoryStore::new();
    let sink = ScriptedSink::new().script(|_, _| Act::Refuse(Outcome::Permanent("never".into())));
    let relay = Relay::builder(Arc::new(store.clone()))
        .sink("sink", Arc::new(sink))
        .route("*".parse::<Pattern>().unwrap(), ["sink"])
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay.run(stop.clone()));
    let mut tx = store.begin().await.unwrap();
    let message = |n| Message::json("t", &n).unwrap();
    tx.emit(&(0..LETTERS).map(message).collect::<Vec<_>>()).await.unwrap();
    tx.commit().await.unwrap();
    until_dead(&store, LETTERS).await;
    // Long enough for the relay to kill all that a step brought back.
    store.faults().delay(Verb::Operate, Duration::from_secs(5));
    let operator = Operator::new(Arc::new(store.clone()), "ann");
    let retrying = async { operator.dead_retry_all(&mut |_| {}).await };
    let retried = tokio::time::timeout(Duration::from_secs(300), retrying).await;
    assert_eq!(retried.expect("it ends").unwrap().retried, LETTERS);
    until_dead(&store, LETTERS).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}
