//! What a relay does when the database has another history, and when it refuses to write.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sendoff::store::{EmitStore, OperateStore, RelayStore, Status};
use sendoff::{Message, Outcome, Reason, Uuid};
use sendoff_relay::{Observer, Relay, RunReport, Settings};
use sendoff_testkit::{Act, MemoryStore, ScriptedSink, Verb};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

async fn emit(store: &MemoryStore, topic: &str, count: usize) -> BTreeSet<Uuid> {
    let messages: Vec<Message> = (0..count)
        .map(|n| Message::bytes(topic, "text/plain", "x").key(format!("k{}", n % 7)))
        .collect();
    let mut tx = store.begin().await.unwrap();
    let emitted = tx.emit(&messages).await.unwrap();
    tx.commit().await.unwrap();
    emitted.into_iter().map(sendoff::Emitted::id).collect()
}

#[derive(Default)]
struct Changes(AtomicU32);

impl Observer for Changes {
    fn history_changed(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Running {
    stop: CancellationToken,
    relay: JoinHandle<sendoff::Result<RunReport>>,
    changes: Arc<Changes>,
}

impl Running {
    fn start(store: &Arc<MemoryStore>, sink: &Arc<ScriptedSink>) -> Self {
        let changes = Arc::new(Changes::default());
        let relay = Relay::builder(store.clone() as Arc<dyn RelayStore>)
            .sink("sink", sink.clone())
            .route("*".parse().unwrap(), ["sink"])
            .observer(changes.clone())
            .settings(Settings {
                seed: Some(1),
                ..Settings::default()
            })
            .build()
            .unwrap();
        let stop = CancellationToken::new();
        Self {
            relay: tokio::spawn(relay.run(stop.clone())),
            stop,
            changes,
        }
    }

    async fn stop(self) -> RunReport {
        self.stop.cancel();
        self.relay.await.unwrap().unwrap()
    }
}

fn temporary() -> Outcome {
    Outcome::Temporary(Reason::new("not now"))
}

fn arrived(sink: &ScriptedSink) -> BTreeSet<Uuid> {
    sink.arrivals().iter().map(|outgoing| outgoing.id).collect()
}

#[tokio::test(start_paused = true)]
async fn messages_with_the_numbers_of_others_in_flight_are_all_delivered() {
    let store = Arc::new(MemoryStore::new());
    let sink = Arc::new(ScriptedSink::new().latency(Duration::from_secs(3)));
    emit(&store, "old", 60).await;
    let running = Running::start(&store, &sink);
    // Some are with the sink, and the rest is in flight.
    tokio::time::sleep(Duration::from_secs(2)).await;
    store.set_back();
    store.replace_server();
    let new = emit(&store, "new", 60).await;
    tokio::time::timeout(Duration::from_secs(120), async {
        while !new.is_subset(&arrived(&sink)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .expect("all of the new ones are delivered, long before the next sweep");
    let changes = running.changes.clone();
    running.stop().await;
    assert_eq!(changes.0.load(Ordering::SeqCst), 1, "one change is told once");
    assert_eq!(store.backlog().await.unwrap().ready, 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_in_anothers_place_costs_a_moment_and_repeats_nothing() {
    let store = Arc::new(MemoryStore::new());
    let sink = Arc::new(ScriptedSink::new().latency(Duration::from_millis(1500)));
    let all = emit(&store, "t", 200).await;
    let running = Running::start(&store, &sink);
    tokio::time::sleep(Duration::from_secs(1)).await;
    store.replace_server();
    tokio::time::timeout(Duration::from_secs(60), sink.wait_for_arrivals(200))
        .await
        .unwrap();
    let changes = running.changes.clone();
    running.stop().await;
    assert_eq!(changes.0.load(Ordering::SeqCst), 1);
    assert_eq!(
        (arrived(&sink), sink.arrivals().len()),
        (all, 200),
        "what was with the sink was settled"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_the_other_history_gives_back_to_a_relay_is_worked_on() {
    // The server that took over knows the relay as the owner of lanes that it had given away.
    let store = Arc::new(MemoryStore::new());
    let sink = Arc::new(ScriptedSink::new());
    let running = Running::start(&store, &sink);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let other = Running::start(&store, &sink);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = store.leases();
    other.stop().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Half of the lanes are a relay's again that is gone; its lease runs out and they come back.
    store.restore_leases(before);
    store.replace_server();
    let all = emit(&store, "t", 100).await;
    tokio::time::timeout(Duration::from_secs(30), sink.wait_for_arrivals(100))
        .await
        .unwrap();
    assert_eq!(arrived(&sink), all);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_is_leased_again_while_its_messages_are_with_a_sink_is_begun_anew() {
    let store = Arc::new(MemoryStore::new());
    let sink = Arc::new(ScriptedSink::new().latency(Duration::from_secs(25)));
    let running = Running::start(&store, &sink);
    let other = Running::start(&store, &sink);
    tokio::time::sleep(Duration::from_secs(5)).await;
    // The standby knows half of the lanes as another relay's, which is gone when it takes over.
    let standby = store.snapshot();
    other.stop().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    emit(&store, "old", 60).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    store.fail_over(standby);
    let new = emit(&store, "new", 60).await;
    // That relay's lease is over, and its lanes are leased again, long before the sink has answered.
    tokio::time::timeout(Duration::from_secs(600), async {
        while !new.is_subset(&arrived(&sink)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .expect("all of the new ones are delivered");
    running.stop().await;
    assert_eq!(store.backlog().await.unwrap().ready, 0);
}

#[tokio::test(start_paused = true)]
async fn lanes_that_were_leased_in_another_history_are_not_believed_in() {
    let store = Arc::new(MemoryStore::new());
    let sink = Arc::new(ScriptedSink::new());
    store.faults().delay(Verb::Acquire, Duration::from_secs(2));
    store.faults().delay(Verb::BlockedKeys, Duration::from_secs(3));
    let running = Running::start(&store, &sink);
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The standby has not heard of the lanes that the relay is just being granted.
    let standby = store.snapshot();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    store.fail_over(standby);
    tokio::time::sleep(Duration::from_secs(4)).await;
    store.faults().clear();
    let other = Running::start(&store, &sink);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let nobodys = (0..store.lanes()).filter(|lane| store.owner_of(*lane).is_none());
    assert_eq!(nobodys.count(), 0);
    running.stop().await;
    other.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_database_refuses_to_settle_holds_up_no_other_and_does_not_count() {
    let store = Arc::new(MemoryStore::new());
    let sink = ScriptedSink::new().script(|outgoing, _| {
        if outgoing.topic == "fails" {
            Act::Refuse(temporary())
        } else {
            Act::Deliver
        }
    });
    let sink = Arc::new(sink);
    // Nothing can be written to the waiting table, as where a privilege is missing.
    store.faults().refuse_waits(true);
    let refused = emit(&store, "fails", 7).await;
    let running = Running::start(&store, &sink);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let others = emit(&store, "works", 3).await;
    let keyless: Vec<Message> = (0..500).map(|_| Message::bytes("works", "text/plain", "x")).collect();
    let mut tx = store.begin().await.unwrap();
    tx.emit(&keyless).await.unwrap();
    tx.commit().await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    // Followers of the keys wait behind the failed ones; everybody else is through.
    assert_eq!(sink.arrivals().len(), 500);
    assert_eq!(store.backlog().await.unwrap().ready, 10, "nothing is lost");
    let calls = sink
        .publications()
        .iter()
        .filter(|publication| publication.outgoing.topic == "fails")
        .count();
    assert_eq!(calls, 7, "what was refused is not sent again and again");
    store.faults().refuse_waits(false);
    tokio::time::sleep(Duration::from_secs(40)).await;
    for id in &refused {
        let row = store.find(*id).await.unwrap().remove(0);
        assert_eq!(
            (row.status, row.attempts),
            (Status::Retry, 1),
            "written once the database takes it"
        );
    }
    for id in &others {
        assert_eq!(
            store.find(*id).await.unwrap().remove(0).detail.as_deref(),
            Some("blocked")
        );
    }
    let report = running.stop().await;
    assert_eq!((report.delivered, report.retried), (500, 7));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_by_itself_tells_that_the_database_refuses() {
    let store = Arc::new(MemoryStore::new());
    let sink = Arc::new(ScriptedSink::new().script(|_, _| Act::Refuse(temporary())));
    store.faults().refuse_waits(true);
    emit(&store, "fails", 3).await;
    let relay = Relay::builder(store.clone() as Arc<dyn RelayStore>)
        .sink("sink", sink)
        .route("*".parse().unwrap(), ["sink"])
        .build()
        .unwrap();
    let error = relay
        .run_once(CancellationToken::new())
        .await
        .expect_err("it was refused");
    assert_eq!(error.kind(), sendoff::ErrorKind::Denied);
    assert_eq!(store.backlog().await.unwrap().ready, 3);
}
