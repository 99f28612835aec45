//! Transactions that hold their number open for long, and those that never commit.

use std::time::Duration;

use sendoff::Message;
use tokio::time::Instant;

use super::manual_relay::message;
use super::registry::{CaseResult, cases};
use super::scene::{PATIENCE, Scene};
use crate::Recorder;
use crate::history::Sent;

cases![
    a_transaction_that_commits_late_is_read needs ConcurrentTransactions,
    many_transactions_that_commit_out_of_order_are_read needs ConcurrentTransactions,
    numbers_that_were_never_used_hold_nothing_up,
];

fn keyed(key: &str, n: u64) -> Message {
    Message::json("suite.numbered", &n).expect("numbers serialise").key(key)
}

fn sent(outgoing: &sendoff::Outgoing) -> Sent {
    let n = String::from_utf8_lossy(&outgoing.payload).parse().expect("a number");
    Sent::new(outgoing.key.clone().expect("a key"), n)
}

/// Reads and settles until so many messages have arrived, and notes them in the order they came.
async fn drain(scene: &Scene, recorder: &Recorder, count: usize) -> sendoff::Result<()> {
    let (mut relay, began) = (scene.relay().await?, Instant::now());
    while recorder.arrivals() < count {
        assert!(
            began.elapsed() < 2 * PATIENCE,
            "read {} of {count}",
            recorder.arrivals()
        );
        let page = relay.read(1000).await?;
        if page.rows.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        let read: Vec<_> = page.rows.into_iter().map(message).collect();
        for outgoing in &read {
            recorder.arrived(sent(outgoing));
        }
        relay.deliver(&read).await?;
    }
    relay.read_nothing().await;
    Ok(())
}

async fn a_transaction_that_commits_late_is_read(scene: Scene) -> CaseResult {
    const KEYS: u64 = 25;
    const BATCHES: u64 = 100;
    let recorder = Recorder::new();
    let reading = tokio::spawn({
        let (scene, recorder) = (scene.second().await?, recorder.clone());
        let count = usize::try_from(BATCHES * 100 + 2 * KEYS).expect("a small number");
        async move { drain(&scene, &recorder, count).await }
    });
    let emit = async |n: u64, count: u64| {
        let mut tx = scene.subject.emit.begin().await?;
        let mut noted = recorder.begin();
        let messages: Vec<Sent> = (n..n + count).map(|n| Sent::new(format!("k{}", n % KEYS), n)).collect();
        for sent in &messages {
            noted.emit(sent.clone());
        }
        tx.emit(&messages.iter().map(|sent| keyed(&sent.key, sent.n)).collect::<Vec<_>>())
            .await?;
        Ok::<_, sendoff::Error>((tx, noted))
    };
    // One of each key before the straggler, so that its order against those is checked as well.
    let (tx, noted) = emit(0, KEYS).await?;
    tx.commit().await?;
    noted.committed();
    let (straggler, straggling) = emit(KEYS, KEYS).await?;
    let began = Instant::now();
    for batch in 0..BATCHES {
        let (tx, noted) = emit(2 * KEYS + batch * 100, 100).await?;
        tx.commit().await?;
        noted.committed();
    }
    // Everything around it is long read when it commits.
    while recorder.arrivals() < usize::try_from(BATCHES * 100).expect("a small number")
        || began.elapsed() < Duration::from_secs(2)
    {
        assert!(!reading.is_finished(), "the reader stopped");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    straggler.commit().await?;
    straggling.committed();
    reading.await.expect("no panic")?;
    let findings = recorder.history().check();
    assert!(findings.is_sound() && findings.duplicates.is_empty(), "{findings}");
    Ok(())
}

async fn many_transactions_that_commit_out_of_order_are_read(scene: Scene) -> CaseResult {
    const TASKS: u64 = 4;
    const EACH: u64 = 40;
    let recorder = Recorder::new();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let (scene, recorder) = (scene.second().await?, recorder.clone());
        tasks.spawn(async move {
            let mut rng = fastrand::Rng::with_seed(task);
            for n in 0..EACH {
                let mut noted = recorder.begin();
                let mut tx = scene.subject.emit.begin().await?;
                // A key of its own, and one that all share.
                for sent in [Sent::new(format!("own{task}"), n), Sent::new("shared", task * EACH + n)] {
                    tx.emit(&[keyed(&sent.key, sent.n)]).await?;
                    noted.emit(sent);
                    tokio::time::sleep(Duration::from_millis(rng.u64(0..40))).await;
                }
                if rng.u8(0..10) == 0 {
                    tx.rollback().await?;
                    noted.rolled_back();
                } else {
                    tx.commit().await?;
                    noted.committed();
                }
            }
            Ok::<(), sendoff::Error>(())
        });
    }
    let reading = tokio::spawn({
        let (scene, recorder) = (scene.second().await?, recorder.clone());
        async move {
            let mut relay = scene.relay().await?;
            let mut quiet = 0;
            // A sweep comes every second: two of them without a row and nothing is left.
            while quiet < 220 {
                let page = relay.read(1000).await?;
                let read: Vec<_> = page.rows.into_iter().map(message).collect();
                quiet = if read.is_empty() { quiet + 1 } else { 0 };
                for outgoing in &read {
                    recorder.arrived(sent(outgoing));
                }
                relay.deliver(&read).await?;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok::<(), sendoff::Error>(())
        }
    });
    for task in tasks.join_all().await {
        task?;
    }
    reading.await.expect("no panic")?;
    let findings = recorder.history().check();
    assert!(findings.is_sound() && findings.duplicates.is_empty(), "{findings}");
    Ok(())
}

async fn numbers_that_were_never_used_hold_nothing_up(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    for n in 0..20 {
        let mut tx = scene.subject.emit.begin().await?;
        tx.emit(&[keyed("k", 100 + n)]).await?;
        tx.rollback().await?;
        scene.emit([keyed("k", n)]).await?;
    }
    let read = relay.read_messages(20).await;
    let numbers: Vec<u64> = read.iter().map(|outgoing| sent(outgoing).n).collect();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    Ok(())
}
