//! Long runs under faults, judged by their whole history.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sendoff::store::{Backlog, Filter, Status};
use sendoff::{Message, Outcome};
use sendoff_relay::{OnFailure, Settings};
use tokio_util::sync::CancellationToken;

use super::Subject;
use super::registry::{CaseResult, cases};
use super::relays::{Running, policy, relay, sent, settings};
use super::scene::{PATIENCE, Scene, eventually, persistently};
use crate::history::Sent;
use crate::{Act, Recorder, ScriptedSink};

cases![
    eight_relays_keep_the_order_of_a_thousand_keys,
    a_relay_that_is_killed_loses_nothing,
    a_transaction_that_commits_late_arrives needs ConcurrentTransactions,
];

/// A producer: transactions of several messages over its own keys, each key counted up. One in ten is rolled back.
async fn produce(scene: Scene, recorder: Recorder, producer: u64, keys: u64, rounds: u64, at_once: u64) -> CaseResult {
    let mut rng = fastrand::Rng::with_seed(producer);
    for n in 0..rounds {
        for first in (0..keys).step_by(usize::try_from(at_once).expect("a small number")) {
            let messages: Vec<Sent> = (first..(first + at_once).min(keys))
                .map(|key| Sent::new(format!("p{producer}-{key}"), n))
                .collect();
            let rolls_back = rng.u8(0..10) == 0;
            persistently(|| transact(&scene, &recorder, &messages, rolls_back)).await?;
        }
    }
    Ok(())
}

async fn transact(scene: &Scene, recorder: &Recorder, messages: &[Sent], rolls_back: bool) -> CaseResult {
    let mut noted = recorder.begin();
    let mut tx = scene.subject.emit.begin().await?;
    let numbered = |sent: &Sent| Ok(Message::json("suite.numbered", &sent.n)?.key(&sent.key));
    tx.emit(&messages.iter().map(numbered).collect::<sendoff::Result<Vec<_>>>()?)
        .await?;
    messages.iter().for_each(|sent| noted.emit(sent.clone()));
    if rolls_back {
        tx.rollback().await?;
        noted.rolled_back();
    } else {
        noted.committing();
        tx.commit().await?;
        noted.committed();
    }
    Ok(())
}

/// A sink that notes arrivals in the recorder.
fn noting(recorder: &Recorder) -> ScriptedSink {
    let recorder = recorder.clone();
    ScriptedSink::new().observer(move |publication| {
        if publication.arrived() {
            recorder.arrived(sent(&publication.outgoing));
        }
    })
}

async fn nothing_is_left_to_deliver(scene: &Scene) -> CaseResult {
    eventually("everything is delivered or dead", || async {
        let backlog = scene.subject.relay.backlog().await?;
        Ok(backlog
            == Backlog {
                dead: backlog.dead,
                ..Backlog::default()
            })
    })
    .await
}

async fn note_dead_letters(scene: &Scene, recorder: &Recorder) -> sendoff::Result<usize> {
    let dead = Filter {
        status: Some(Status::Dead),
        ..Filter::default()
    };
    let letters = scene.subject.operate.list(&dead, 1_000_000).await?.messages;
    for letter in &letters {
        let n = String::from_utf8_lossy(&letter.payload).parse().expect("a number");
        recorder.died(Sent::new(letter.key.clone().expect("a key"), n));
    }
    Ok(letters.len())
}

async fn eight_relays_keep_the_order_of_a_thousand_keys(scene: Scene) -> CaseResult {
    const PRODUCERS: u64 = 4;
    let (recorder, copies) = (Recorder::new(), Arc::new(AtomicU64::new(0)));
    let (counting, seed) = (copies.clone(), AtomicU64::new(1));
    let sink = Arc::new(noting(&recorder).script(move |_, _| {
        // Chance that repeats itself as far as the calls do.
        let mut rng = fastrand::Rng::with_seed(seed.fetch_add(1, Ordering::Relaxed));
        match rng.u32(0..1000) {
            0..30 => Act::Refuse(Outcome::Temporary("not now".into())),
            30..40 => Act::Refuse(Outcome::Permanent("never".into())),
            40..50 => Act::Refuse(Outcome::Unknown("perhaps, and it did not".into())),
            50..65 => {
                counting.fetch_add(1, Ordering::Relaxed);
                Act::DeliverBut(Outcome::Unknown("perhaps, and it did".into()))
            }
            _ => Act::Deliver,
        }
    }));
    let mut running = Vec::new();
    for n in 0..8 {
        let store = scene.second().await?.subject.relay;
        let builder = relay(store, &sink).default_policy(policy(OnFailure::Skip));
        running.push(Running::start(builder.name(format!("relay {n}")).settings(Settings {
            seed: Some(n),
            ..settings()
        })));
    }
    let mut producers = tokio::task::JoinSet::new();
    for producer in 0..PRODUCERS {
        producers.spawn(produce(
            scene.second().await?,
            recorder.clone(),
            producer,
            1000 / PRODUCERS,
            5,
            25,
        ));
    }
    // Some come and go meanwhile, so that lanes change hands under load.
    for _ in 0..2 {
        let store = scene.second().await?.subject.relay;
        let extra = Running::start(relay(store, &sink).default_policy(policy(OnFailure::Skip)));
        tokio::time::sleep(Duration::from_millis(300)).await;
        extra.stop().await?;
        running.remove(0).stop().await?;
    }
    for producer in producers.join_all().await {
        producer?;
    }
    nothing_is_left_to_deliver(&scene).await?;
    for running in running {
        running.stop().await?;
    }
    let dead = note_dead_letters(&scene, &recorder).await?;
    let (history, copies) = (recorder.history(), copies.load(Ordering::Relaxed));
    let findings = history.check();
    assert!(findings.is_sound(), "{findings}");
    assert!(
        findings.duplicates.len() as u64 <= copies,
        "{findings}, {copies} lost confirmations"
    );
    assert!(
        history.arrivals.len() > 4000 && dead > 10,
        "{} arrivals, {dead} dead",
        history.arrivals.len()
    );
    Ok(())
}

/// Runs a relay in a runtime of its own until it is killed: every task of it stops where it is, connections and all, and
/// nothing is given back.
fn start_mortal(
    subject: Subject,
    sink: Arc<ScriptedSink>,
    settings: Settings,
    killed: CancellationToken,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let store = subject.database.open().await.expect("a store").relay;
            let relay = relay(store, &sink).settings(settings).build().expect("a relay");
            tokio::select! {
                _ = relay.run(CancellationToken::new()) => {}
                () = killed.cancelled() => {}
            }
        });
        runtime.shutdown_background();
    })
}

async fn a_relay_that_is_killed_loses_nothing(scene: Scene) -> CaseResult {
    const KILLS: usize = 3;
    let recorder = Recorder::new();
    let sink = Arc::new(noting(&recorder).latency(Duration::from_millis(3)));
    let mortal = Settings {
        lease: Duration::from_secs(2),
        heartbeat: Duration::from_millis(200),
        batch: 50,
        max_in_flight: 150,
        // Kills in a row are no proof against a message here.
        crash_limit: 100,
        ..settings()
    };
    let emitter = scene.second().await?;
    let producing = tokio::spawn(produce(emitter, recorder.clone(), 0, 100, 60, 20));
    for kill in 1..=KILLS {
        let killed = CancellationToken::new();
        let relay = start_mortal(scene.subject.clone(), sink.clone(), mortal.clone(), killed.clone());
        // Under load: it is killed when it has delivered something, with more in flight.
        let before = recorder.arrivals();
        eventually("it is at work", || async {
            Ok(recorder.arrivals() > before + 300 * kill)
        })
        .await?;
        killed.cancel();
        tokio::task::spawn_blocking(|| relay.join())
            .await
            .expect("no panic")
            .expect("no panic");
    }
    producing.await.expect("no panic")?;
    let last = Running::start(relay(scene.subject.relay.clone(), &sink).settings(mortal.clone()));
    nothing_is_left_to_deliver(&scene).await?;
    last.stop().await?;
    let findings = recorder.history().check();
    assert!(findings.is_sound(), "{findings}");
    // A page may hold some more than it was asked for.
    let in_flight = mortal.max_in_flight + 2 * mortal.batch + usize::from(scene.subject.relay.lanes());
    assert!(findings.duplicates.len() <= KILLS * in_flight, "{findings}");
    assert_eq!(scene.subject.relay.backlog().await?, Backlog::default());
    Ok(())
}

async fn a_transaction_that_commits_late_arrives(scene: Scene) -> CaseResult {
    const KEYS: u64 = 20;
    let recorder = Recorder::new();
    let sink = Arc::new(noting(&recorder));
    let running = Running::start(relay(scene.second().await?.subject.relay, &sink).settings(Settings {
        batch: 1000,
        max_in_flight: 4000,
        ..settings()
    }));
    let keyed = |n: u64| Sent::new(format!("p0-{}", n % KEYS), 1_000_000 + n);
    transact(&scene, &recorder, &(0..KEYS).map(keyed).collect::<Vec<_>>(), false).await?;
    // It has its numbers, and keeps them for seconds.
    let mut straggling = recorder.begin();
    let mut straggler = scene.subject.emit.begin().await?;
    let late: Vec<Sent> = (KEYS..2 * KEYS).map(keyed).collect();
    let message = |sent: &Sent| Message::json("suite.numbered", &sent.n).map(|message| message.key(&sent.key));
    straggler
        .emit(&late.iter().map(message).collect::<sendoff::Result<Vec<_>>>()?)
        .await?;
    late.into_iter().for_each(|sent| straggling.emit(sent));
    let began = tokio::time::Instant::now();
    produce(scene.second().await?, recorder.clone(), 0, KEYS, 500, KEYS).await?;
    nothing_is_left_to_deliver(&scene).await?;
    tokio::time::sleep_until(began + Duration::from_secs(3)).await;
    // Counted before the commit: a quick store has delivered them before the commit is answered.
    let expected = recorder.arrivals() + usize::try_from(KEYS).expect("a small number");
    straggling.committing();
    straggler.commit().await?;
    straggling.committed();
    eventually("the late ones arrive", || async { Ok(recorder.arrivals() >= expected) }).await?;
    nothing_is_left_to_deliver(&scene).await?;
    running.stop().await?;
    let findings = recorder.history().check();
    assert!(findings.is_sound() && findings.duplicates.is_empty(), "{findings}");
    assert!(began.elapsed() < 3 * PATIENCE);
    Ok(())
}
