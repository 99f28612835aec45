//! What an operator does to messages that fit a filter.

use std::time::Duration;

use sendoff::store::{Command, DeadReason, Filter, OperateStore, RetryOptions, RetryState, Status, Table, Verdict};
use sendoff::{Outgoing, Uuid};

use super::manual_relay::{ManualRelay, dead, retry, sink};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered, plain};

cases![
    at_most_so_many_dead_letters_are_retried,
    a_retried_message_is_due_at_once,
    a_scheduled_message_is_retried_only_when_it_is_meant,
    a_scheduled_message_that_no_relay_has_seen_is_retried,
    a_reset_message_starts_from_none,
    retrying_in_batches_meets_every_message_once,
    a_held_message_is_not_retried,
    only_waiting_messages_that_fit_are_retried,
    at_most_so_many_dead_letters_are_discarded,
    only_dead_letters_that_fit_are_discarded,
    messages_that_fit_are_counted,
    every_act_is_in_the_audit,
    a_command_in_batches_has_one_row_in_the_audit,
];

const LATER: Duration = Duration::from_secs(3600);

fn operate(scene: &Scene) -> &dyn OperateStore {
    &*scene.subject.operate
}

/// As many messages of one key, settled one by one with the same verdict.
async fn settled(scene: &Scene, count: usize, verdict: &Verdict) -> sendoff::Result<(ManualRelay, Vec<Outgoing>)> {
    scene.emit_key("k", count).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(count).await;
    for outgoing in &read {
        relay.settle_as(verdict, std::slice::from_ref(outgoing)).await?;
    }
    Ok((relay, read))
}

fn ids(read: &[Outgoing]) -> Vec<Uuid> {
    read.iter().map(|outgoing| outgoing.id).collect()
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
    assert_eq!(
        operate(&scene)
            .retry_dead(&all, None, 2, &mut Command::by("suite"))
            .await?,
        2
    );
    assert_eq!(
        ids(&relay.read_messages(2).await),
        ids(&read[..2]),
        "the first come first"
    );
    assert_eq!(
        operate(&scene)
            .retry_dead(&all, None, usize::MAX, &mut Command::by("suite"))
            .await?,
        3
    );
    assert_eq!(ids(&relay.read_messages(3).await), ids(&read[2..]));
    assert_eq!(
        operate(&scene)
            .retry_dead(&all, None, 2, &mut Command::by("suite"))
            .await?,
        0
    );
    Ok(())
}

const RETRY: RetryOptions = RetryOptions {
    reset: false,
    scheduled: false,
};
const RESET: RetryOptions = RetryOptions { reset: true, ..RETRY };
const SCHEDULED: RetryOptions = RetryOptions {
    scheduled: true,
    ..RETRY
};

/// Makes what fits due, all at once, after it was counted.
async fn retry_waiting(scene: &Scene, filter: &Filter, how: RetryOptions) -> sendoff::Result<u64> {
    let counted = operate(scene).retry_waiting_count(filter, how).await?;
    let mut command = Command::by("suite");
    let retried = operate(scene)
        .retry_waiting(filter, how, None, usize::MAX, &mut command)
        .await?;
    assert_eq!(retried.due, counted, "what would change is what changes");
    assert_eq!(retried.next, None);
    Ok(retried.due)
}

async fn a_retried_message_is_due_at_once(scene: Scene) -> CaseResult {
    scene
        .emit([plain("fails"), plain("is parked"), plain("has no sink")])
        .await?;
    let mut relay = scene.relay().await?;
    for outgoing in relay.read_messages(3).await {
        let verdict = match outgoing.topic.as_str() {
            "fails" => retry(LATER),
            "is parked" => waits(RetryState::Parked, true),
            _ => waits(RetryState::Deferred, false),
        };
        relay.settle_as(&verdict, &[outgoing]).await?;
    }
    relay.read_nothing().await;
    assert_eq!(retry_waiting(&scene, &Filter::default(), RETRY).await?, 3);
    let mut due = relay.read_messages(3).await;
    due.sort_by_key(|outgoing| outgoing.row_ref.seq);
    let attempts: Vec<u32> = due.iter().map(|outgoing| outgoing.attempts).collect();
    assert_eq!(attempts, [1, 1, 0], "their attempts stay");
    assert_eq!(
        retry_waiting(&scene, &Filter::default(), RETRY).await?,
        0,
        "they are due"
    );
    Ok(())
}

fn waits(state: RetryState, charged: bool) -> Verdict {
    Verdict::Retry {
        state,
        delay: LATER,
        charged,
        error: "not now".to_owned(),
    }
}

async fn a_scheduled_message_is_retried_only_when_it_is_meant(scene: Scene) -> CaseResult {
    let scheduled = scene.emit([plain("next week").delay(LATER)]).await?[0].id();
    let mut relay = scene.relay().await?;
    relay.read_nothing().await;
    for how in [RETRY, RESET] {
        assert_eq!(retry_waiting(&scene, &Filter::default(), how).await?, 0);
        assert_eq!(retry_waiting(&scene, &topic("next week"), how).await?, 0);
    }
    relay.read_nothing().await;
    assert_eq!(retry_waiting(&scene, &topic("next week"), SCHEDULED).await?, 1);
    let due = relay.read_messages(1).await;
    assert_eq!((due[0].id, due[0].row_ref.table), (scheduled, Table::Waiting));
    Ok(())
}

async fn a_scheduled_message_that_no_relay_has_seen_is_retried(scene: Scene) -> CaseResult {
    let many = 600;
    scene.emit((0..many).map(|_| plain("t").delay(LATER))).await?;
    assert_eq!(retry_waiting(&scene, &Filter::default(), SCHEDULED).await?, many);
    Ok(())
}

async fn a_reset_message_starts_from_none(scene: Scene) -> CaseResult {
    let (mut relay, read) = settled(&scene, 1, &retry(LATER)).await?;
    let only = Filter {
        ids: vec![read[0].id],
        ..Filter::default()
    };
    assert_eq!(retry_waiting(&scene, &only, RESET).await?, 1);
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
    assert_eq!(
        retry_waiting(&scene, &only, RESET).await?,
        0,
        "there is nothing to reset any more"
    );
    Ok(())
}

async fn retrying_in_batches_meets_every_message_once(scene: Scene) -> CaseResult {
    scene.emit((0..5).map(|n| numbered(&format!("k{n}"), n))).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(5).await;
    relay.settle_as(&retry(LATER), &read).await?;
    let (mut after, mut batches) = (None, Vec::new());
    let mut command = Command::by("ann");
    loop {
        let batch = operate(&scene)
            .retry_waiting(&Filter::default(), RETRY, after.as_ref(), 2, &mut command)
            .await?;
        batches.push(batch.due);
        // They fail again before the next batch, which must not begin with them.
        let due = relay
            .read_messages(usize::try_from(batch.due).unwrap_or_default())
            .await;
        relay.settle_as(&retry(LATER), &due).await?;
        after = batch.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(batches, [2, 2, 1]);
    let tried = operate(&scene).list(&Filter::default(), 9).await?.messages;
    assert!(tried.iter().all(|message| message.attempts == 2), "{tried:?}");
    let audit = operate(&scene).audit(9).await?;
    let noted: Vec<_> = audit
        .iter()
        .map(|row| (row.who.as_str(), row.action.as_str(), row.affected))
        .collect();
    assert_eq!(noted, [("ann", "retry", 5)], "a command has one row");
    Ok(())
}

async fn a_held_message_is_not_retried(scene: Scene) -> CaseResult {
    let ids_of_key = scene.emit_key("k", 3).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(3).await;
    relay.settle_as(&retry(LATER), &read[..1]).await?;
    relay.settle_as(&Verdict::Blocked, &read[1..]).await?;
    for how in [RETRY, RESET] {
        let retried = retry_waiting(&scene, &Filter::default(), how).await?;
        assert_eq!(retried, 1, "the head, and nobody behind it");
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

async fn only_waiting_messages_that_fit_are_retried(scene: Scene) -> CaseResult {
    scene.emit([plain("a.one"), plain("b.one")]).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(2).await;
    relay.settle_as(&retry(LATER), &read).await?;
    scene.emit([plain("a.ready")]).await?;
    let dead = Filter {
        status: Some(Status::Dead),
        ..Filter::default()
    };
    assert_eq!(retry_waiting(&scene, &dead, RETRY).await?, 0);
    assert_eq!(retry_waiting(&scene, &topic("a.*"), RETRY).await?, 1);
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
    assert_eq!(
        operate(&scene)
            .discard_dead(&all, None, 2, &mut Command::by("suite"))
            .await?,
        2
    );
    for (n, outgoing) in read.iter().enumerate() {
        assert_eq!(operate(&scene).find(outgoing.id).await?.len(), usize::from(n >= 2));
    }
    assert_eq!(
        operate(&scene)
            .discard_dead(&all, None, usize::MAX, &mut Command::by("suite"))
            .await?,
        3
    );
    assert_eq!(
        operate(&scene)
            .discard_dead(&all, None, usize::MAX, &mut Command::by("suite"))
            .await?,
        0
    );
    relay.read_nothing().await;
    Ok(())
}

async fn only_dead_letters_that_fit_are_discarded(scene: Scene) -> CaseResult {
    scene.emit([plain("a.one"), plain("b.one"), plain("a.waits")]).await?;
    let mut relay = scene.relay().await?;
    for outgoing in relay.read_messages(3).await {
        let verdict = match outgoing.topic.as_str() {
            "a.waits" => retry(LATER),
            _ => dead(DeadReason::Permanent, false),
        };
        let deliveries = vec![sink("x", verdict.clone()), sink("y", verdict)];
        relay.settle(&[relay.settlement(&outgoing, deliveries)]).await?;
    }
    let pending = Filter {
        status: Some(Status::Retry),
        ..Filter::default()
    };
    assert_eq!(
        operate(&scene)
            .discard_dead(&pending, None, usize::MAX, &mut Command::by("suite"))
            .await?,
        0
    );
    let one_delivery = Filter {
        sink: Some("x".into()),
        ..topic("a.*")
    };
    assert_eq!(
        operate(&scene)
            .discard_dead(&one_delivery, None, usize::MAX, &mut Command::by("suite"))
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
    operate.retry_dead(&some, None, 1, &mut Command::by("ann")).await?;
    operate.discard_dead(&some, None, 1, &mut Command::by("bob")).await?;
    operate.release_key("k", None, "cem").await?;
    for (how, who) in [(RESET, "dan"), (RETRY, "eve")] {
        operate
            .retry_waiting(&some, how, None, 9, &mut Command::by(who))
            .await?;
    }
    operate.reap_gone(Duration::from_secs(60), "fay").await?;
    let audit = operate.audit(100).await?;
    let short: Vec<_> = audit
        .iter()
        .map(|row| (row.who.as_str(), row.action.as_str(), row.affected))
        .collect();
    let expected = [
        ("fay", "reap", 0),
        ("eve", "retry", 0),
        ("dan", "retry --reset", 1),
        ("cem", "keys release", 1),
        ("bob", "dead discard", 1),
        ("ann", "dead retry", 1),
    ];
    assert_eq!(
        short, expected,
        "the newest first, and one that changed nothing is noted, too"
    );
    for row in [1, 2, 4, 5] {
        let noted: Filter = serde_json::from_str(&audit[row].filter).expect("a filter as JSON");
        assert_eq!(noted, some);
    }
    assert!(audit[3].filter.contains("\"k\""), "{}", audit[3].filter);
    assert!(audit[0].filter.contains("60"), "{}", audit[0].filter);
    let now = scene.now().await?;
    assert!(audit.iter().all(|row| row.at <= now + super::scene::TICK));
    assert_eq!(operate.audit(2).await?, audit[..2]);
    Ok(())
}

async fn a_command_in_batches_has_one_row_in_the_audit(scene: Scene) -> CaseResult {
    settled(&scene, 5, &dead(DeadReason::Permanent, false)).await?;
    let (operate, all) = (operate(&scene), Filter::default());
    let (mut retry, mut discard) = (Command::by("ann"), Command::by("bob"));
    for _ in 0..2 {
        assert_eq!(operate.retry_dead(&all, None, 1, &mut retry).await?, 1);
        assert_eq!(operate.discard_dead(&all, None, 1, &mut discard).await?, 1);
    }
    let audit = operate.audit(100).await?;
    let short: Vec<_> = audit
        .iter()
        .map(|row| (row.who.as_str(), row.action.as_str(), row.affected))
        .collect();
    assert_eq!(short, [("bob", "dead discard", 2), ("ann", "dead retry", 2)]);
    Ok(())
}
