//! Idempotency keys: one message of a topic and key within the window, whatever became of the first.

use std::time::Duration;

use sendoff::store::Backlog;
use sendoff::{Emitted, ErrorKind, Event, Message, OnDuplicate};

use super::Setup;
use super::registry::{CaseResult, cases};
use super::scene::{Scene, eventually, persistently, plain};

cases![
    a_duplicate_is_reported_with_the_first_id,
    a_duplicate_fails_if_it_is_asked_to,
    a_second_event_of_an_aggregate_fails_and_the_transaction_goes_on,
    a_duplicate_within_one_call_is_found,
    a_duplicate_is_found_after_the_first_was_delivered,
    another_topic_is_no_duplicate,
    the_key_of_a_rolled_back_transaction_is_free,
    the_key_is_free_again_after_the_window with Setup { dedup_window: Some(Duration::from_secs(1)), ..Setup::PLAIN },
    a_scheduled_message_holds_its_key,
    of_concurrent_emits_of_one_key_one_is_stored,
    a_waiting_emit_of_a_key_gets_it_when_the_other_rolls_back needs ConcurrentTransactions,
];

fn once(key: &str) -> Message {
    plain("t").idempotency_key(key)
}

async fn ready(scene: &Scene) -> sendoff::Result<u64> {
    Ok(scene.subject.relay.backlog().await?.ready)
}

async fn a_duplicate_is_reported_with_the_first_id(scene: Scene) -> CaseResult {
    let first = once("a");
    assert_eq!(scene.emit([first.clone()]).await?, [Emitted::Stored { id: first.id() }]);
    let answers = scene.emit([once("a"), once("b")]).await?;
    assert_eq!(answers[0], Emitted::Duplicate { first: first.id() });
    assert!(!answers[1].is_duplicate());
    assert_eq!(ready(&scene).await?, 2);
    Ok(())
}

async fn a_duplicate_fails_if_it_is_asked_to(scene: Scene) -> CaseResult {
    scene.emit([once("a")]).await?;
    let mut tx = scene.subject.emit.begin().await?;
    let error = tx.emit(&[once("a").on_duplicate(OnDuplicate::Fail)]).await;
    assert_eq!(error.expect_err("it is a duplicate").kind(), ErrorKind::Duplicate);
    // The transaction goes on: what happens to it is the caller's choice.
    tx.emit(&[plain("after")]).await?;
    tx.commit().await?;
    assert_eq!(ready(&scene).await?, 2);
    Ok(())
}

async fn a_second_event_of_an_aggregate_fails_and_the_transaction_goes_on(scene: Scene) -> CaseResult {
    let updated = || Event::new("order", 42, "order.updated");
    let first = scene.emit([updated().into()]).await?[0].id();
    let mut tx = scene.subject.emit.begin().await?;
    let error = tx.emit(&[plain("before"), updated().into(), plain("after")]).await;
    let error = error.expect_err("nobody chose its key, so nobody would look for a report");
    assert_eq!(error.kind(), ErrorKind::Duplicate);
    assert!(error.to_string().contains(&first.to_string()), "{error}");
    let report = tx.emit(&[updated().on_duplicate(OnDuplicate::Report).into()]).await?;
    assert_eq!(report, [Emitted::Duplicate { first }]);
    tx.emit(&[updated().repeatable().into()]).await?;
    tx.commit().await?;
    assert_eq!(ready(&scene).await?, 4);
    Ok(())
}

async fn a_duplicate_within_one_call_is_found(scene: Scene) -> CaseResult {
    let first = once("a");
    let answers = scene.emit([plain("x"), first.clone(), once("a"), plain("y")]).await?;
    assert_eq!(answers[2], Emitted::Duplicate { first: first.id() });
    assert_eq!(ready(&scene).await?, 3);
    Ok(())
}

async fn a_duplicate_is_found_after_the_first_was_delivered(scene: Scene) -> CaseResult {
    let first = scene.emit([once("a")]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    relay.deliver(&read).await?;
    assert_eq!(scene.emit([once("a")]).await?, [Emitted::Duplicate { first }]);
    assert_eq!(scene.subject.relay.backlog().await?, Backlog::default());
    Ok(())
}

async fn another_topic_is_no_duplicate(scene: Scene) -> CaseResult {
    let other = plain("u").idempotency_key("a");
    let answers = scene.emit([once("a"), other, plain("t")]).await?;
    assert!(answers.iter().all(|emitted| !emitted.is_duplicate()));
    assert_eq!(ready(&scene).await?, 3);
    Ok(())
}

async fn the_key_of_a_rolled_back_transaction_is_free(scene: Scene) -> CaseResult {
    let mut tx = scene.subject.emit.begin().await?;
    tx.emit(&[once("a")]).await?;
    tx.rollback().await?;
    assert!(!scene.emit([once("a")]).await?[0].is_duplicate());
    Ok(())
}

async fn the_key_is_free_again_after_the_window(scene: Scene) -> CaseResult {
    let first = scene.emit([once("a")]).await?[0].id();
    assert_eq!(scene.emit([once("a")]).await?, [Emitted::Duplicate { first }]);
    let mut second = None;
    eventually("the window ends", || async {
        Ok(!scene.emit([once("a")]).await?[0].is_duplicate())
    })
    .await?;
    // The second one holds it now, for a window of its own.
    for _ in 0..2 {
        let answer = scene.emit([once("a")]).await?[0];
        assert!(answer.is_duplicate() && answer.id() != first);
        assert_eq!(*second.get_or_insert(answer.id()), answer.id());
    }
    assert_eq!(ready(&scene).await?, 2);
    Ok(())
}

async fn a_scheduled_message_holds_its_key(scene: Scene) -> CaseResult {
    let later = once("a").delay(Duration::from_secs(3600));
    scene.emit([later.clone()]).await?;
    let answers = scene
        .emit([once("a"), once("a").delay(Duration::from_secs(60))])
        .await?;
    assert_eq!(answers, [Emitted::Duplicate { first: later.id() }; 2]);
    let backlog = scene.subject.relay.backlog().await?;
    assert_eq!((backlog.ready, backlog.waiting), (0, 1));
    Ok(())
}

async fn of_concurrent_emits_of_one_key_one_is_stored(scene: Scene) -> CaseResult {
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..6 {
        let scene = scene.second().await?;
        tasks.spawn(async move {
            let mut answers = Vec::new();
            for n in 0..5 {
                let key = format!("k{n}");
                let emitting = || scene.emit([plain("by").header("task", task.to_string()), once(&key)]);
                let emitted = persistently(emitting).await.expect("an emit")[1];
                answers.push((key, emitted));
            }
            answers
        });
    }
    let answers: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    for n in 0..5 {
        let key = format!("k{n}");
        let of_key = || answers.iter().filter(|(of, _)| *of == key).map(|(_, emitted)| *emitted);
        assert_eq!(of_key().count(), 6);
        let stored: Vec<_> = of_key().filter(|emitted| !emitted.is_duplicate()).collect();
        assert_eq!(stored.len(), 1, "{key} was stored more than once, or never");
        assert!(
            of_key().all(|emitted| emitted.id() == stored[0].id()),
            "all name the one that is stored"
        );
    }
    assert_eq!(ready(&scene).await?, 6 * 5 + 5);
    Ok(())
}

async fn a_waiting_emit_of_a_key_gets_it_when_the_other_rolls_back(scene: Scene) -> CaseResult {
    for commits in [true, false] {
        let key = format!("{commits}");
        let mut first = scene.subject.emit.begin().await?;
        let held = first.emit(&[once(&key)]).await?[0].id();
        let other = scene.second().await?;
        let key_too = key.clone();
        let second = tokio::spawn(async move { other.emit([once(&key_too)]).await });
        // It cannot know yet.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(
            !second.is_finished(),
            "it did not wait for the transaction that has the key"
        );
        if commits {
            first.commit().await?;
        } else {
            first.rollback().await?;
        }
        let answer = second.await.expect("no panic")?[0];
        assert_eq!(answer.is_duplicate(), commits);
        assert_eq!(answer.id() == held, commits);
    }
    assert_eq!(ready(&scene).await?, 2);
    Ok(())
}
