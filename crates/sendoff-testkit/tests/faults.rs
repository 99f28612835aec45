//! Relays on a store whose calls fail, whose answers get lost, and that takes their lanes away: nothing is lost and the
//! order of a key holds. Time is paused, so hours pass in a moment.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how it fails"
)]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sendoff::store::{Backlog, Command, EmitStore, Filter, OperateStore, RelayStore};
use sendoff::{Message, Outcome, Outgoing, Pattern};
use sendoff_relay::{OnFailure, Relay, RetryPolicy, Settings, TopicPolicy};
use sendoff_testkit::history::{Findings, Sent};
use sendoff_testkit::{Act, MemoryStore, Recorder, ScriptedSink, Verb};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const VERBS: [Verb; 10] = [
    Verb::Register,
    Verb::Heartbeat,
    Verb::Acquire,
    Verb::Evict,
    Verb::Read,
    Verb::BlockedKeys,
    Verb::Settle,
    Verb::ReleaseOrphans,
    Verb::Paused,
    Verb::ClearQuarantine,
];

const KEYS: u64 = 40;

fn sent(outgoing: &Outgoing) -> Sent {
    let n = String::from_utf8_lossy(&outgoing.payload).parse().unwrap();
    Sent::new(outgoing.key.clone().unwrap(), n)
}

fn noting(recorder: &Recorder) -> ScriptedSink {
    let recorder = recorder.clone();
    ScriptedSink::new()
        .latency(Duration::from_millis(20))
        .observer(move |publication| {
            if publication.arrived() {
                recorder.arrived(sent(&publication.outgoing));
            }
        })
}

/// One message of every key.
async fn emit(store: &MemoryStore, recorder: &Recorder, n: u64) {
    let mut noted = recorder.begin();
    let mut tx = store.begin().await.unwrap();
    for key in 0..KEYS {
        let sent = Sent::new(format!("k{key}"), n);
        tx.emit(&[Message::json("t", &n).unwrap().key(&sent.key)])
            .await
            .unwrap();
        noted.emit(sent);
    }
    tx.commit().await.unwrap();
    noted.committed();
}

fn start(store: &MemoryStore, sink: &Arc<ScriptedSink>, seed: u64) -> (CancellationToken, JoinHandle<()>) {
    let everything: Pattern = "*".parse().unwrap();
    let policy = TopicPolicy {
        retry: RetryPolicy {
            base: Duration::from_millis(200),
            attempts: 1000,
            ..RetryPolicy::default()
        },
        on_failure: OnFailure::Block,
    };
    let relay = Relay::builder(Arc::new(store.clone()))
        .sink("sink", sink.clone())
        .route(everything, ["sink"])
        .default_policy(policy)
        .settings(Settings {
            seed: Some(seed),
            ..Settings::default()
        })
        .build()
        .unwrap();
    let stop = CancellationToken::new();
    let running = relay.run(stop.clone());
    (stop, tokio::spawn(async move { drop(running.await) }))
}

/// Waits until nothing is left, for as long as any fault of this file may last.
async fn drained(store: &MemoryStore, what: &str) {
    let draining = async {
        loop {
            let backlog = store.backlog().await.unwrap();
            if backlog == Backlog::default() {
                return;
            }
            if backlog.dead > 0 {
                // Relays died over and over while they worked on it alone: it is taken for the reason, and somebody
                // has to say otherwise.
                let all = Filter::default();
                store
                    .retry_dead(&all, None, 100, &mut Command::by("an operator"))
                    .await
                    .unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(300), draining).await;
    assert!(waited.is_ok(), "{what}: {:?} is stuck", store.backlog().await.unwrap());
}

async fn survives(what: &str, fault: impl Fn(&MemoryStore)) {
    let (store, recorder) = (MemoryStore::new(), Recorder::new());
    let sink = Arc::new(noting(&recorder));
    fault(&store);
    let (stop, running) = start(&store, &sink, 7);
    for n in 0..5 {
        emit(&store, &recorder, n).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        fault(&store);
    }
    store.faults().clear();
    drained(&store, what).await;
    stop.cancel();
    running.await.unwrap();
    let findings = recorder.history().check();
    assert!(findings.is_sound(), "{what}: {findings}");
}

#[tokio::test(start_paused = true)]
async fn every_call_may_fail() {
    for verb in VERBS {
        survives(&format!("{verb:?} fails"), |store| store.faults().fail(verb, 3)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_answer_may_be_lost() {
    for verb in VERBS {
        survives(&format!("the answer to {verb:?} is lost"), |store| {
            store.faults().lose_answers(verb, 2);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_may_be_slow() {
    for verb in VERBS {
        survives(&format!("{verb:?} is slow"), |store| {
            store.faults().delay(verb, Duration::from_secs(4));
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn settlements_may_be_forgotten() {
    survives("settlements are forgotten", |store| store.faults().lose_settles(2)).await;
}

#[tokio::test(start_paused = true)]
async fn lanes_may_be_taken_away() {
    survives("lanes are taken away", |store| {
        store.evict_now();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_the_database_may_jump() {
    survives("the clock jumps", |store| store.shift_clock(Duration::from_secs(3600))).await;
}

/// What takes lanes from a relay.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    /// The end of its lease, by which it has stopped to publish.
    Time,
    /// Somebody who does not wait for that: nothing can keep a relay that does not know it from publishing.
    Force,
}

/// Three relays, a sink that fails at random, and every fault at random.
async fn chaos(seed: u64, takes: Takes) -> Findings {
    let (store, recorder) = (MemoryStore::new(), Recorder::new());
    let dice = std::sync::Mutex::new(fastrand::Rng::with_seed(seed));
    let sink = noting(&recorder).script(move |_, _| match dice.lock().unwrap().u8(0..100) {
        0..8 => Act::Refuse(Outcome::Temporary("not now".into())),
        8..11 => Act::Refuse(Outcome::Unknown("perhaps".into())),
        11..14 => Act::DeliverBut(Outcome::Unknown("perhaps".into())),
        14..16 => Act::Refuse(Outcome::SinkDown("down".into())),
        _ => Act::Deliver,
    });
    let (sink, mut rng) = (Arc::new(sink), fastrand::Rng::with_seed(seed));
    let mut relays: Vec<_> = (0..3).map(|n| start(&store, &sink, seed + n)).collect();
    for n in 0..60 {
        emit(&store, &recorder, n).await;
        let verb = VERBS[rng.usize(..VERBS.len())];
        match rng.u8(0..12) {
            0..2 => store.faults().fail(verb, rng.u32(1..5)),
            2..4 => store.faults().lose_answers(verb, rng.u32(1..3)),
            4..6 => store.faults().delay(verb, Duration::from_millis(rng.u64(1..15_000))),
            6 => store.faults().lose_settles(rng.u32(1..3)),
            7 if takes == Takes::Force => drop(store.evict_now()),
            8 => {
                // Killed: it gives nothing back.
                let (_, running) = relays.swap_remove(rng.usize(..relays.len()));
                running.abort();
                relays.push(start(&store, &sink, seed + 100 + n));
            }
            9 => {
                let (stop, _) = relays.swap_remove(rng.usize(..relays.len()));
                stop.cancel();
                relays.push(start(&store, &sink, seed + 200 + n));
            }
            _ => store.faults().clear(),
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(10..6_000))).await;
    }
    store.faults().clear();
    drained(&store, &format!("seed {seed}")).await;
    recorder.history().check()
}

/// The same few ones every time, or those from `SENDOFF_TEST_SEED` on, to look further.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let first =
        std::env::var("SENDOFF_TEST_SEED").map_or(0, |first| first.parse().expect("SENDOFF_TEST_SEED: a number"));
    first..first + count
}

#[tokio::test(start_paused = true)]
async fn three_relays_in_chaos_lose_nothing_and_keep_the_order() {
    for seed in seeds(4) {
        let findings = chaos(seed, Takes::Time).await;
        assert!(findings.is_sound(), "seed {seed}: {findings}");
    }
}

#[tokio::test(start_paused = true)]
async fn three_relays_whose_lanes_are_taken_by_force_lose_nothing() {
    for seed in seeds(3) {
        let findings = chaos(seed, Takes::Force).await;
        let sound = findings.lost.is_empty() && findings.phantoms.is_empty();
        assert!(sound, "seed {seed}: {findings}");
    }
}

/// The sink is down, and does not answer when it is asked again; that call is dropped with the lease.
#[tokio::test(start_paused = true)]
async fn a_sink_whose_probe_was_dropped_with_the_lease_is_asked_again() {
    let (store, recorder) = (MemoryStore::new(), Recorder::new());
    let calls = std::sync::atomic::AtomicU32::new(0);
    let sink = noting(&recorder).script(move |_, _| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => Act::Refuse(Outcome::SinkDown("down".into())),
        1 => Act::Hang,
        _ => Act::Deliver,
    });
    let (_stop, _running) = start(&store, &Arc::new(sink), 7);
    let mut tx = store.begin().await.unwrap();
    tx.emit(&[Message::json("t", &0).unwrap().key("k0")]).await.unwrap();
    tx.commit().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    store.faults().fail(Verb::Heartbeat, u32::MAX);
    tokio::time::sleep(Duration::from_secs(15)).await;
    store.faults().clear();
    drained(&store, "a probe without an answer").await;
    assert_eq!(recorder.arrivals(), 1);
}
