//! The very same message emitted again, by a producer that does not know how its commit ended: stored once.

use std::time::Duration;

use sendoff::store::Backlog;
use sendoff::{Emitted, Message, Uuid};

use super::Setup;
use super::registry::{CaseResult, cases};
use super::scene::{Scene, eventually, persistently, plain};

cases![
    the_same_message_emitted_again_is_stored_once,
    the_same_message_in_one_call_is_stored_once,
    the_same_message_is_not_stored_again_once_it_was_delivered,
    the_same_scheduled_message_is_stored_once,
    the_same_message_of_a_rolled_back_transaction_is_stored,
    the_same_message_is_new_after_the_window
        with Setup { dedup_window: Some(Duration::from_secs(1)), ..Setup::PLAIN },
    of_concurrent_emits_of_the_same_message_one_is_stored,
    without_an_idempotency_key_nothing_is_compared,
    a_plain_insert_of_the_same_message_is_stored_once needs Sql,
    a_plain_insert_with_the_key_of_another_message_is_refused needs Sql,
];

fn message() -> Message {
    plain("t").idempotency_key("a")
}

async fn ready(scene: &Scene) -> sendoff::Result<u64> {
    Ok(scene.subject.relay.backlog().await?.ready)
}

async fn the_same_message_emitted_again_is_stored_once(scene: Scene) -> CaseResult {
    let message = message();
    let stored = [Emitted::Stored { id: message.id() }];
    let mut tx = scene.subject.emit.begin().await?;
    assert_eq!(tx.emit(std::slice::from_ref(&message)).await?, stored);
    assert_eq!(tx.emit(std::slice::from_ref(&message)).await?, stored);
    tx.commit().await?;
    for _ in 0..2 {
        assert_eq!(scene.emit([message.clone()]).await?, stored);
    }
    assert_eq!(ready(&scene).await?, 1);
    // Others still are duplicates of it.
    let other = scene.emit([plain("t").idempotency_key("a")]).await?;
    assert_eq!(other, [Emitted::Duplicate { first: message.id() }]);
    assert_eq!(ready(&scene).await?, 1);
    Ok(())
}

async fn the_same_message_in_one_call_is_stored_once(scene: Scene) -> CaseResult {
    let message = message();
    let answers = scene.emit([message.clone(), plain("x"), message.clone()]).await?;
    assert_eq!(
        (answers[0], answers[2]),
        (
            Emitted::Stored { id: message.id() },
            Emitted::Stored { id: message.id() }
        )
    );
    assert_eq!(ready(&scene).await?, 2);
    Ok(())
}

async fn the_same_message_is_not_stored_again_once_it_was_delivered(scene: Scene) -> CaseResult {
    let message = message();
    scene.emit([message.clone()]).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    relay.deliver(&read).await?;
    assert_eq!(
        scene.emit([message.clone()]).await?,
        [Emitted::Stored { id: message.id() }]
    );
    assert_eq!(scene.subject.relay.backlog().await?, Backlog::default());
    relay.read_nothing().await;
    Ok(())
}

async fn the_same_scheduled_message_is_stored_once(scene: Scene) -> CaseResult {
    let message = message().delay(Duration::from_secs(3600));
    for _ in 0..3 {
        scene.emit([message.clone()]).await?;
    }
    let backlog = scene.subject.relay.backlog().await?;
    assert_eq!((backlog.ready, backlog.waiting), (0, 1));
    Ok(())
}

async fn the_same_message_of_a_rolled_back_transaction_is_stored(scene: Scene) -> CaseResult {
    let message = message();
    let mut tx = scene.subject.emit.begin().await?;
    tx.emit(std::slice::from_ref(&message)).await?;
    tx.rollback().await?;
    scene.emit([message.clone()]).await?;
    assert_eq!(ready(&scene).await?, 1);
    Ok(())
}

async fn the_same_message_is_new_after_the_window(scene: Scene) -> CaseResult {
    let message = message();
    scene.emit([message.clone()]).await?;
    assert_eq!(ready(&scene).await?, 1);
    eventually("the window ends", || async {
        scene.emit([message.clone()]).await?;
        Ok(ready(&scene).await? == 2)
    })
    .await
}

async fn of_concurrent_emits_of_the_same_message_one_is_stored(scene: Scene) -> CaseResult {
    for round in 0..5 {
        let message = plain("t").idempotency_key(format!("round {round}"));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let (scene, message) = (scene.second().await?, message.clone());
            tasks.spawn(async move { persistently(|| scene.emit([message.clone()])).await });
        }
        for answer in tasks.join_all().await {
            assert_eq!(answer?, [Emitted::Stored { id: message.id() }]);
        }
        assert_eq!(ready(&scene).await?, round + 1);
    }
    Ok(())
}

async fn without_an_idempotency_key_nothing_is_compared(scene: Scene) -> CaseResult {
    let message = plain("t");
    scene.emit([message.clone(), message.clone()]).await?;
    assert_eq!(ready(&scene).await?, 2);
    Ok(())
}

fn insert(id: Uuid) -> String {
    format!("INSERT INTO outbox_message (id, topic, payload, idempotency_key) VALUES ('{id}', 't', '{{}}', 'a')")
}

async fn a_plain_insert_of_the_same_message_is_stored_once(scene: Scene) -> CaseResult {
    let message = message();
    for _ in 0..2 {
        scene.subject.database.execute(&insert(message.id())).await?;
    }
    scene.emit([message.clone()]).await?;
    scene.subject.database.execute(&insert(message.id())).await?;
    assert_eq!(ready(&scene).await?, 1);
    assert_eq!(scene.find_one(message.id()).await?.payload, b"{}");
    Ok(())
}

async fn a_plain_insert_with_the_key_of_another_message_is_refused(scene: Scene) -> CaseResult {
    scene.emit([message()]).await?;
    let refused = scene.subject.database.execute(&insert(Uuid::now_v7())).await;
    refused.expect_err("the key is taken");
    assert_eq!(ready(&scene).await?, 1);
    Ok(())
}
