//! Dead letters: visible, replayable, and in the way of their key when they are to be.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Command, DeadReason, Filter, Row, Status, Table, Verdict};
use sendoff::{Outgoing, Uuid};

use super::manual_relay::{ManualRelay, dead, retry, sink};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, eventually, numbered, plain};

cases![
    a_blocking_dead_letter_holds_its_followers,
    a_dead_letter_that_does_not_block_lets_its_followers_go,
    a_blocking_dead_letter_goes_first_when_it_is_retried,
    a_blocking_dead_letter_that_is_gone_lets_its_followers_go needs Sql,
    a_retried_dead_letter_starts_from_none,
    a_retried_dead_letter_keeps_a_date_that_has_not_passed,
    dead_letters_of_one_key_come_back_in_order,
    a_dead_letter_that_was_never_routed_is_routed_anew,
    an_unrouted_dead_letter_that_is_retried_holds_its_key_until_it_is_gone,
    a_dead_delivery_comes_back_for_its_own_sink_only,
    a_retried_dead_letter_can_die_again,
    only_letters_that_were_dead_by_then_are_retried_or_discarded,
];

const LATER: Duration = Duration::from_secs(3600);

async fn in_flight(scene: &Scene, count: usize) -> sendoff::Result<(ManualRelay, Vec<Outgoing>)> {
    scene.emit_key("k", count).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(count).await;
    Ok((relay, read))
}

async fn retry_all(scene: &Scene) -> sendoff::Result<u64> {
    scene
        .subject
        .operate
        .retry_dead(&Filter::default(), None, usize::MAX, &mut Command::by("suite"))
        .await
}

fn ids(read: &[Outgoing]) -> Vec<Uuid> {
    read.iter().map(|outgoing| outgoing.id).collect()
}

async fn a_blocking_dead_letter_holds_its_followers(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene, 4).await?;
    // From the ready table, and later from the waiting table.
    relay.settle_as(&dead(DeadReason::Permanent, true), &read[..1]).await?;
    relay.settle_as(&Verdict::Blocked, &read[1..3]).await?;
    for held in &read[1..3] {
        assert_eq!(scene.find_one(held.id).await?.due_at, None);
    }
    assert_eq!(relay.store.release_orphans(relay.owner, &relay.lanes()).await?, 0);
    let blocked = scene.subject.relay.blocked_keys(&relay.lanes()).await?;
    assert_eq!(blocked.len(), 1);
    scene.emit_key("w", 2).await?;
    let others = relay.read_messages(2).await;
    relay.settle_as(&retry(Duration::ZERO), &others[..1]).await?;
    relay.settle_as(&Verdict::Blocked, &others[1..]).await?;
    let head = relay.read_messages(1).await;
    let report = relay.settle_as(&dead(DeadReason::Exhausted, true), &head).await?;
    assert!(report.freed.is_empty() && !report.woke);
    assert_eq!(scene.find_one(others[1].id).await?.due_at, None);
    relay.read_nothing().await;
    Ok(())
}

async fn a_dead_letter_that_does_not_block_lets_its_followers_go(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene, 3).await?;
    relay.settle_as(&retry(Duration::ZERO), &read[..1]).await?;
    relay.settle_as(&Verdict::Blocked, &read[1..]).await?;
    let head = relay.read_messages(1).await;
    let report = relay.settle_as(&dead(DeadReason::Exhausted, false), &head).await?;
    assert!(report.woke);
    let followers = relay.read_messages(2).await;
    assert_eq!(ids(&followers), ids(&read[1..]));
    assert_eq!(relay.deliver(&followers).await?.freed.len(), 1);
    assert_eq!(scene.find_one(read[0].id).await?.status, Status::Dead);
    Ok(())
}

async fn a_blocking_dead_letter_goes_first_when_it_is_retried(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene, 4).await?;
    relay.settle_as(&dead(DeadReason::Permanent, true), &read[..1]).await?;
    relay.settle_as(&Verdict::Blocked, &read[1..]).await?;
    assert_eq!(retry_all(&scene).await?, 1);
    let head = relay.read_messages(1).await;
    assert_eq!((head[0].id, head[0].row_ref.table), (read[0].id, Table::Waiting));
    relay.read_nothing().await;
    let report = relay.deliver(&head).await?;
    assert!(report.woke && report.freed.is_empty());
    let followers = relay.read_messages(3).await;
    assert_eq!(ids(&followers), ids(&read[1..]));
    assert_eq!(relay.deliver(&followers).await?.freed.len(), 1);
    Ok(())
}

async fn a_blocking_dead_letter_that_is_gone_lets_its_followers_go(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene, 2).await?;
    relay.settle_as(&dead(DeadReason::Permanent, true), &read[..1]).await?;
    relay.settle_as(&Verdict::Blocked, &read[1..]).await?;
    scene.subject.database.execute("DELETE FROM outbox_dead").await?;
    assert_eq!(relay.store.release_orphans(relay.owner, &relay.lanes()).await?, 1);
    let follower = relay.read_messages(1).await;
    assert_eq!(ids(&follower), ids(&read[1..]));
    assert_eq!(relay.deliver(&follower).await?.freed.len(), 1);
    Ok(())
}

async fn a_retried_dead_letter_starts_from_none(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene, 1).await?;
    relay.settle_as(&retry(Duration::ZERO), &read).await?;
    let due = relay.read_messages(1).await;
    relay.settle_as(&dead(DeadReason::Exhausted, false), &due).await?;
    let dead_row = scene.find_one(read[0].id).await?;
    assert_eq!(dead_row.attempts, 2);
    let before = scene.now().await?;
    assert_eq!(retry_all(&scene).await?, 1);
    let stored = scene.find_one(read[0].id).await?;
    assert_eq!(
        (stored.attempts, stored.sink.as_str(), stored.seq),
        (0, "sink", dead_row.seq)
    );
    assert_eq!(
        (stored.detail.as_deref(), &stored.history),
        (Some("retry"), &dead_row.history)
    );
    assert!(stored.due_at.is_some_and(|due| due + super::scene::TICK >= before));
    assert_eq!(relay.read_messages(1).await[0].attempts, 0);
    Ok(())
}

async fn a_retried_dead_letter_keeps_a_date_that_has_not_passed(scene: Scene) -> CaseResult {
    let now = scene.now().await?;
    let dates = [now + LATER, now - LATER];
    scene.emit(dates.map(|at| plain("t").expires_at(at))).await?;
    let mut relay = scene.relay().await?;
    let read: Vec<Outgoing> = relay
        .read_rows(2)
        .await
        .into_iter()
        .map(|row| match row {
            Row::Message(outgoing) | Row::Expired(outgoing) => Arc::unwrap_or_clone(outgoing),
            Row::Unreadable { why, .. } => panic!("{why}"),
        })
        .collect();
    relay.settle_as(&dead(DeadReason::Permanent, false), &read).await?;
    assert_eq!(retry_all(&scene).await?, 2);
    let mut kept: Vec<_> = relay
        .read_messages(2)
        .await
        .into_iter()
        .filter_map(|outgoing| outgoing.expires_at)
        .collect();
    assert_eq!(kept.pop(), Some(dates[0]));
    assert!(kept.is_empty(), "a date that has passed is gone");
    Ok(())
}

async fn dead_letters_of_one_key_come_back_in_order(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene, 10).await?;
    // They died in another order than they were emitted, and some block.
    for n in [4, 0, 9, 2, 7, 1, 3, 8, 6, 5] {
        relay
            .settle_as(&dead(DeadReason::Permanent, n % 3 == 0), &read[n..=n])
            .await?;
    }
    assert_eq!(retry_all(&scene).await?, 10);
    assert_eq!(ids(&relay.read_messages(10).await), ids(&read));
    Ok(())
}

async fn a_dead_letter_that_was_never_routed_is_routed_anew(scene: Scene) -> CaseResult {
    let id = scene.emit([plain("nowhere")]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    relay
        .settle(&[relay.settlement(&read[0], vec![sink("", dead(DeadReason::Unroutable, false))])])
        .await?;
    assert_eq!(scene.find_one(id).await?.sink, "");
    assert_eq!(retry_all(&scene).await?, 1);
    let again = relay.read_messages(1).await;
    assert_eq!(
        (again[0].row_ref.table, &again[0].row_ref.sink),
        (Table::Waiting, &None)
    );
    let deliveries = vec![sink("a", retry(LATER)), sink("b", retry(LATER))];
    relay.settle(&[relay.settlement(&again[0], deliveries)]).await?;
    assert_eq!(scene.find_delivery(id, "a").await?.attempts, 1);
    assert_eq!(scene.subject.operate.find(id).await?.len(), 2);
    Ok(())
}

async fn an_unrouted_dead_letter_that_is_retried_holds_its_key_until_it_is_gone(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene, 3).await?;
    relay
        .settle(&[relay.settlement(&read[0], vec![sink("", dead(DeadReason::Unroutable, false))])])
        .await?;
    assert_eq!(retry_all(&scene).await?, 1);
    // Nobody knows yet where it will go, so what comes behind it waits for every sink.
    relay.settle_as(&Verdict::Blocked, &read[1..]).await?;
    for follower in &read[1..] {
        assert_eq!(scene.find_one(follower.id).await?.due_at, None);
    }
    let head = relay.read_messages(1).await;
    assert_eq!(head[0].row_ref.sink, None);
    relay.deliver(&head).await?;
    // At once, or by the janitor.
    let (store, owner, lanes) = (relay.store.clone(), relay.owner, relay.lanes());
    let first = read[1].id;
    eventually("the followers are released", || async {
        store.release_orphans(owner, &lanes).await?;
        Ok(scene.find_one(first).await?.due_at.is_some())
    })
    .await?;
    let next = super::manual_relay::message(relay.read(1).await?.rows.remove(0));
    assert_eq!(next.id, first);
    Ok(())
}

async fn a_dead_delivery_comes_back_for_its_own_sink_only(scene: Scene) -> CaseResult {
    let id = scene.emit([numbered("k", 0)]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    let deliveries = vec![
        sink("a", dead(DeadReason::Permanent, false)),
        sink("b", dead(DeadReason::Permanent, false)),
    ];
    relay.settle(&[relay.settlement(&read[0], deliveries)]).await?;
    let filter = Filter {
        sink: Some("a".into()),
        ..Filter::default()
    };
    assert_eq!(
        scene
            .subject
            .operate
            .retry_dead(&filter, None, usize::MAX, &mut Command::by("suite"))
            .await?,
        1
    );
    let due = relay.read_messages(1).await;
    assert_eq!(due[0].row_ref.sink.as_deref(), Some("a"));
    relay.deliver(&due).await?;
    assert_eq!(scene.find_one(id).await?.sink, "b");
    Ok(())
}

async fn a_retried_dead_letter_can_die_again(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene, 1).await?;
    let mut hand = read.clone();
    for round in 1..4 {
        relay.settle_as(&dead(DeadReason::Permanent, true), &hand).await?;
        let stored = scene.find_one(read[0].id).await?;
        assert_eq!((stored.status, stored.attempts), (Status::Dead, 1));
        assert_eq!(stored.history.map(|json| json.matches("hopeless").count()), Some(round));
        assert_eq!(retry_all(&scene).await?, 1);
        hand = relay.read_messages(1).await;
    }
    Ok(())
}

async fn only_letters_that_were_dead_by_then_are_retried_or_discarded(scene: Scene) -> CaseResult {
    let (mut relay, read) = in_flight(&scene, 3).await?;
    let hopeless = dead(DeadReason::Permanent, false);
    relay.settle_as(&hopeless, &read).await?;
    let (operate, all) = (&scene.subject.operate, Filter::default());
    let until = Some(operate.now().await?);
    tokio::time::sleep(super::scene::TICK).await;
    assert_eq!(operate.retry_dead(&all, until, 2, &mut Command::by("suite")).await?, 2);
    let again = relay.read_messages(2).await;
    relay.settle_as(&hopeless, &again).await?;
    assert_eq!(
        operate
            .retry_dead(&all, until, usize::MAX, &mut Command::by("suite"))
            .await?,
        1,
        "those that died again were not dead by then"
    );
    assert_eq!(ids(&relay.read_messages(1).await), ids(&read[2..]));
    assert_eq!(
        operate
            .discard_dead(&all, until, usize::MAX, &mut Command::by("suite"))
            .await?,
        0
    );
    let now = Some(operate.now().await?);
    assert_eq!(
        operate
            .discard_dead(&all, now, usize::MAX, &mut Command::by("suite"))
            .await?,
        2
    );
    Ok(())
}
