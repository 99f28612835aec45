//! What an operator does to messages that fit a filter.

use std::time::Duration;

use sendoff::store::{DeadReason, Filter, OperateStore, Room, Status, Verdict};
use sendoff::{Delivery, Uuid};

use super::manual_relay::{ManualRelay, dead, leg, retry};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered, plain};

cases![
    at_most_so_many_dead_letters_are_retried,
    a_hastened_message_is_due_at_once,
    a_reset_message_starts_from_none,
    hastening_in_batches_comes_to_an_end,
    a_held_message_is_not_hastened,
    only_waiting_messages_that_fit_are_hastened,
    at_most_so_many_dead_letters_are_discarded,
    only_dead_letters_that_fit_are_discarded,
    messages_that_fit_are_counted,
    every_act_is_in_the_audit,
];

const LATER: Duration = Duration::from_secs(3600);

fn operate(scene: &Scene) -> &dyn OperateStore {
    &*scene.subject.operate
}

/// As many messages of one key, settled one by one with the same verdict.
async fn settled(scene: &Scene, count: usize, verdict: &Verdict) -> sendoff::Result<(ManualRelay, Vec<Delivery>)> {
    scene.emit_key("k", count).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(count).await;
    for delivery in &read {
        relay.settle_as(verdict, std::slice::from_ref(delivery)).await?;
    }
    Ok((relay, read))
}

fn ids(read: &[Delivery]) -> Vec<Uuid> {
    read.iter().map(|delivery| delivery.id).collect()
}

fn topic(topic: &str) -> Filter {
    Filter {
        topic: Some(topic.to_owned()),
        ..Filter::default()
    }
}

async fn at_most_so_many_dead_letters_are_retried(scene: Scene) -> CaseResult {
    let (mut relay, read) = settled(&scene, 5, &dead(DeadReason::Permanent, false)).await?;
    let all = Filter::default();
    assert_eq!(operate(&scene).retry_dead(&all, None, 2, "suite").await?, 2);
    assert_eq!(
        ids(&relay.read_messages(2).await),
        ids(&read[..2]),
        "the first come first"
    );
    assert_eq!(operate(&scene).retry_dead(&all, None, usize::MAX, "suite").await?, 3);
    assert_eq!(ids(&relay.read_messages(3).await), ids(&read[2..]));
    assert_eq!(operate(&scene).retry_dead(&all, None, 2, "suite").await?, 0);
    Ok(())
}

async fn a_hastened_message_is_due_at_once(scene: Scene) -> CaseResult {
    let (mut relay, read) = settled(&scene, 1, &retry(LATER)).await?;
    scene.emit([plain("later").delay(LATER)]).await?;
    relay.read_nothing().await;
    let hastened = operate(&scene)
        .hasten(&Filter::default(), false, usize::MAX, "suite")
        .await?;
    assert_eq!(hastened, 2);
    let mut due = relay.read_messages(2).await;
    due.sort_by_key(|delivery| delivery.place.seq);
    assert_eq!((due[0].id, due[0].attempts), (read[0].id, 1), "its attempts stay");
    assert_eq!((due[1].topic.as_str(), due[1].place.room), ("later", Room::Waiting));
    Ok(())
}

async fn a_reset_message_starts_from_none(scene: Scene) -> CaseResult {
    let (mut relay, read) = settled(&scene, 1, &retry(LATER)).await?;
    let reset = async || {
        let filter = Filter {
            ids: vec![read[0].id],
            ..Filter::default()
        };
        operate(&scene).hasten(&filter, true, usize::MAX, "suite").await
    };
    assert_eq!(reset().await?, 1);
    let stored = scene.find_one(read[0].id).await?;
    assert_eq!(
        (stored.status, stored.attempts, stored.last_error),
        (Status::Pending, 0, None)
    );
    assert!(
        stored.history.is_some_and(|history| history.contains("it failed")),
        "what happened is not forgotten"
    );
    assert_eq!(relay.read_messages(1).await[0].attempts, 0);
    assert_eq!(reset().await?, 0, "there is nothing to reset any more");
    Ok(())
}

async fn hastening_in_batches_comes_to_an_end(scene: Scene) -> CaseResult {
    let later = (0..5).map(|n| numbered(&format!("k{n}"), n).delay(LATER));
    scene.emit(later).await?;
    for (reset, expected) in [(false, [2, 2, 1, 0]), (true, [0, 0, 0, 0])] {
        for expected in expected {
            let hastened = operate(&scene).hasten(&Filter::default(), reset, 2, "suite").await?;
            assert_eq!(hastened, expected);
        }
    }
    Ok(())
}

async fn a_held_message_is_not_hastened(scene: Scene) -> CaseResult {
    let ids_of_key = scene.emit_key("k", 3).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(3).await;
    relay.settle_as(&retry(LATER), &read[..1]).await?;
    relay.settle_as(&Verdict::Hold, &read[1..]).await?;
    for reset in [false, true] {
        let hastened = operate(&scene)
            .hasten(&Filter::default(), reset, usize::MAX, "suite")
            .await?;
        assert_eq!(hastened, 1, "the head, and nobody behind it");
        for held in &ids_of_key[1..] {
            assert_eq!(scene.find_one(*held).await?.due_at, None);
        }
    }
    let head = relay.read_messages(1).await;
    assert_eq!(head[0].id, ids_of_key[0]);
    relay.deliver(&head).await?;
    assert_eq!(ids(&relay.read_messages(2).await), ids_of_key[1..]);
    Ok(())
}

async fn only_waiting_messages_that_fit_are_hastened(scene: Scene) -> CaseResult {
    scene
        .emit([
            plain("a.one").delay(LATER),
            plain("b.one").delay(LATER),
            plain("a.ready"),
        ])
        .await?;
    let hasten = async |filter: Filter| operate(&scene).hasten(&filter, false, usize::MAX, "suite").await;
    let dead = Filter {
        status: Some(Status::Dead),
        ..Filter::default()
    };
    assert_eq!(hasten(dead).await?, 0);
    assert_eq!(hasten(topic("a.*")).await?, 1);
    let mut relay = scene.relay().await?;
    let mut topics: Vec<String> = relay
        .read_messages(2)
        .await
        .into_iter()
        .map(|read| read.topic)
        .collect();
    topics.sort();
    assert_eq!(topics, ["a.one", "a.ready"]);
    Ok(())
}

async fn at_most_so_many_dead_letters_are_discarded(scene: Scene) -> CaseResult {
    let (mut relay, read) = settled(&scene, 5, &dead(DeadReason::Permanent, false)).await?;
    let all = Filter::default();
    assert_eq!(operate(&scene).discard_dead(&all, None, 2, "suite").await?, 2);
    for (n, delivery) in read.iter().enumerate() {
        assert_eq!(operate(&scene).find(delivery.id).await?.len(), usize::from(n >= 2));
    }
    assert_eq!(operate(&scene).discard_dead(&all, None, usize::MAX, "suite").await?, 3);
    assert_eq!(operate(&scene).discard_dead(&all, None, usize::MAX, "suite").await?, 0);
    relay.read_nothing().await;
    Ok(())
}

async fn only_dead_letters_that_fit_are_discarded(scene: Scene) -> CaseResult {
    scene.emit([plain("a.one"), plain("b.one"), plain("a.waits")]).await?;
    let mut relay = scene.relay().await?;
    for delivery in relay.read_messages(3).await {
        let verdict = match delivery.topic.as_str() {
            "a.waits" => retry(LATER),
            _ => dead(DeadReason::Permanent, false),
        };
        let legs = vec![leg("x", verdict.clone()), leg("y", verdict)];
        relay.settle(&[relay.settlement(&delivery, legs)]).await?;
    }
    let pending = Filter {
        status: Some(Status::Retry),
        ..Filter::default()
    };
    assert_eq!(
        operate(&scene)
            .discard_dead(&pending, None, usize::MAX, "suite")
            .await?,
        0
    );
    let one_leg = Filter {
        leg: Some("x".into()),
        ..topic("a.*")
    };
    assert_eq!(
        operate(&scene)
            .discard_dead(&one_leg, None, usize::MAX, "suite")
            .await?,
        1
    );
    assert_eq!(scene.count(Status::Dead).await?, 3);
    assert_eq!(scene.count(Status::Retry).await?, 2, "what is not dead is left alone");
    Ok(())
}

async fn messages_that_fit_are_counted(scene: Scene) -> CaseResult {
    scene
        .emit([plain("a.one"), plain("a.two").delay(LATER), plain("b.one")])
        .await?;
    assert_eq!(operate(&scene).count(&Filter::default()).await?, 3);
    assert_eq!(operate(&scene).count(&topic("a.*")).await?, 2);
    assert_eq!(operate(&scene).count(&topic("c")).await?, 0);
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(2).await;
    relay.settle_as(&dead(DeadReason::Permanent, false), &read).await?;
    let dead = Filter {
        status: Some(Status::Dead),
        ..Filter::default()
    };
    assert_eq!(operate(&scene).count(&dead).await?, 2);
    Ok(())
}

async fn every_act_is_in_the_audit(scene: Scene) -> CaseResult {
    settled(&scene, 3, &dead(DeadReason::Permanent, true)).await?;
    let (operate, some) = (operate(&scene), topic("suite.*"));
    operate.retry_dead(&some, None, 1, "ann").await?;
    operate.discard_dead(&some, None, 1, "bob").await?;
    operate.release_key("k", None, "cem").await?;
    operate.hasten(&some, true, 9, "dan").await?;
    operate.hasten(&some, false, 9, "eve").await?;
    let audit = operate.audit(100).await?;
    let short: Vec<_> = audit
        .iter()
        .map(|row| (row.who.as_str(), row.action.as_str(), row.affected))
        .collect();
    let expected = [
        ("eve", "hasten", 0),
        ("dan", "reset", 1),
        ("cem", "release", 1),
        ("bob", "discard", 1),
        ("ann", "retry", 1),
    ];
    assert_eq!(
        short, expected,
        "the newest first, and one that changed nothing is noted, too"
    );
    for row in [0, 1, 3, 4] {
        let noted: Filter = serde_json::from_str(&audit[row].filter).expect("a filter as JSON");
        assert_eq!(noted, some);
    }
    assert!(audit[2].filter.contains("\"k\""), "{}", audit[2].filter);
    let now = scene.now().await?;
    assert!(audit.iter().all(|row| row.at <= now + super::scene::TICK));
    assert_eq!(operate.audit(2).await?, audit[..2]);
    Ok(())
}
