//! The order of a key: followers wait behind a head that failed, and go when it is gone.

use std::collections::BTreeSet;
use std::time::Duration;

use sendoff::store::{BlockedKey, DeadReason, RetryState, Status, Verdict};
use sendoff::{Outgoing, Uuid};

use super::manual_relay::{ManualRelay, dead, retry, sink, waiting};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered, plain};

cases![
    a_follower_is_held_until_its_head_is_delivered,
    a_follower_is_held_in_the_same_breath_as_its_head,
    followers_are_held_whatever_the_order_of_the_call,
    a_follower_of_nothing_is_due_at_once,
    a_waiting_row_can_be_held_again,
    followers_go_in_the_order_of_their_numbers,
    many_followers_all_go_in_the_end,
    a_head_that_fails_again_keeps_its_followers,
    followers_that_were_let_go_are_held_back_when_one_fails,
    one_that_went_ahead_lets_nobody_pass_the_head,
    a_head_whose_sink_is_down_blocks_its_followers,
    a_parked_head_lets_its_followers_go,
    a_head_that_is_parked_later_lets_its_followers_go,
    a_scheduled_message_blocks_nobody,
    other_keys_and_other_deliveries_are_not_held,
    blocked_keys_are_those_that_wait_or_block,
    a_key_is_reported_free_when_nothing_of_it_is_left,
    a_blocked_row_that_nothing_blocks_is_released needs Sql,
    a_blocked_row_that_something_blocks_is_not_released,
    only_the_owner_lets_go_of_orphans needs Sql,
];

const LATER: Duration = Duration::from_secs(3600);

/// Messages of one key, in flight.
async fn key_in_flight(scene: &Scene, count: usize) -> sendoff::Result<(ManualRelay, Vec<Outgoing>)> {
    scene.emit_key("k", count).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(count).await;
    Ok((relay, read))
}

/// The first one fails, those behind it are held.
async fn fail_head(relay: &mut ManualRelay, read: &[Outgoing], verdict: Verdict) -> CaseResult {
    relay.settle_as(&verdict, &read[..1]).await?;
    relay.settle_as(&Verdict::Blocked, &read[1..]).await?;
    Ok(())
}

async fn is_held(scene: &Scene, id: Uuid) -> sendoff::Result<bool> {
    let stored = scene.find_one(id).await?;
    let held = stored.detail.as_deref() == Some("blocked") && stored.due_at.is_none();
    assert!(
        held || stored.due_at.is_some(),
        "without a due time only when it is held: {stored:#?}"
    );
    Ok(held)
}

fn ids(read: &[Outgoing]) -> Vec<Uuid> {
    read.iter().map(|outgoing| outgoing.id).collect()
}

async fn a_follower_is_held_until_its_head_is_delivered(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 2).await?;
    fail_head(&mut relay, &read, retry(Duration::from_millis(100))).await?;
    let held = scene.find_one(read[1].id).await?;
    assert_eq!(
        (held.detail.as_deref(), held.due_at, held.attempts),
        (Some("blocked"), None, 0)
    );
    assert_eq!((held.status, held.sink.as_str()), (Status::Blocked, "sink"));
    let head = relay.read_messages(1).await;
    assert_eq!(head[0].id, read[0].id);
    relay.read_nothing().await;
    let report = relay.deliver(&head).await?;
    assert!(report.woke, "the follower is due, and the relay should know");
    assert!(report.freed.is_empty(), "the follower is still to come");
    let follower = relay.read_messages(1).await;
    assert_eq!((follower[0].id, follower[0].attempts), (read[1].id, 0));
    let report = relay.deliver(&follower).await?;
    assert_eq!(report.freed.len(), 1);
    Ok(())
}

async fn a_follower_is_held_in_the_same_breath_as_its_head(scene: Scene) -> CaseResult {
    for (n, head) in [
        retry(LATER),
        waiting(RetryState::Deferred, LATER),
        dead(DeadReason::Permanent, true),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("k{n}");
        scene.emit_key(&key, 3).await?;
        let mut relay = scene.relay().await?;
        let read = relay.read_messages(3).await;
        let settlements = [
            relay.settlement(&read[0], vec![sink("sink", head)]),
            relay.settlement(&read[1], vec![sink("sink", Verdict::Blocked)]),
            relay.settlement(&read[2], vec![sink("sink", Verdict::Blocked)]),
        ];
        relay.settle(&settlements).await?;
        assert!(
            is_held(&scene, read[1].id).await? && is_held(&scene, read[2].id).await?,
            "case {n}"
        );
        relay.store.deregister(relay.owner).await?;
    }
    Ok(())
}

async fn followers_are_held_whatever_the_order_of_the_call(scene: Scene) -> CaseResult {
    // A head with two sinks is written when both have answered, perhaps behind its follower in the same call.
    let (mut relay, read) = key_in_flight(&scene, 2).await?;
    let settlements = [
        relay.settlement(&read[1], vec![sink("sink", Verdict::Blocked)]),
        relay.settlement(&read[0], vec![sink("sink", retry(LATER))]),
    ];
    relay.settle(&settlements).await?;
    assert!(
        is_held(&scene, read[1].id).await?,
        "the follower would overtake its head"
    );
    Ok(())
}

async fn a_follower_of_nothing_is_due_at_once(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 2).await?;
    // An operator has removed the head meanwhile: there is nothing to wait for.
    let report = relay.settle_as(&Verdict::Blocked, &read[1..]).await?;
    assert!(report.lost.is_empty());
    assert!(!is_held(&scene, read[1].id).await?);
    assert_eq!(ids(&relay.read_messages(1).await), ids(&read[1..]));
    Ok(())
}

async fn a_waiting_row_can_be_held_again(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 2).await?;
    fail_head(&mut relay, &read, retry(LATER)).await?;
    // The follower was tried once, and comes back; then it is to wait again.
    scene.emit_key("k", 1).await?;
    let third = relay.read_messages(1).await;
    relay
        .settle_as(&waiting(RetryState::Parked, Duration::ZERO), &third)
        .await?;
    let due = relay.read_messages(1).await;
    relay.settle_as(&Verdict::Blocked, &due).await?;
    let stored = scene.find_one(third[0].id).await?;
    assert_eq!(
        (stored.detail.as_deref(), stored.due_at, stored.attempts),
        (Some("blocked"), None, 1)
    );
    assert_eq!(
        stored.last_error.as_deref(),
        Some("it failed"),
        "waiting is no failure and forgets none"
    );
    Ok(())
}

async fn followers_go_in_the_order_of_their_numbers(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 6).await?;
    relay.settle_as(&retry(Duration::ZERO), &read[..1]).await?;
    // Written down in another order than they were emitted.
    for n in [3, 1, 5, 2, 4] {
        relay.settle_as(&Verdict::Blocked, &read[n..=n]).await?;
    }
    let head = relay.read_messages(1).await;
    relay.deliver(&head).await?;
    assert_eq!(ids(&relay.read_messages(5).await), ids(&read[1..]));
    Ok(())
}

async fn many_followers_all_go_in_the_end(scene: Scene) -> CaseResult {
    const COUNT: usize = 300;
    let (mut relay, read) = key_in_flight(&scene, COUNT).await?;
    fail_head(&mut relay, &read, retry(Duration::ZERO)).await?;
    let mut arrived = Vec::new();
    while arrived.len() < COUNT {
        let page = relay.read(50).await?;
        let due: Vec<Outgoing> = page.rows.into_iter().map(super::manual_relay::message).collect();
        assert!(!due.is_empty(), "{} of {COUNT}, and the rest is stuck", arrived.len());
        for outgoing in due {
            arrived.push(outgoing.id);
            let report = relay.deliver(&[outgoing]).await?;
            assert_eq!(
                report.freed.is_empty(),
                arrived.len() < COUNT,
                "after {}",
                arrived.len()
            );
        }
    }
    assert_eq!(arrived, ids(&read));
    Ok(())
}

async fn a_head_that_fails_again_keeps_its_followers(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 3).await?;
    fail_head(&mut relay, &read, retry(Duration::ZERO)).await?;
    for _ in 0..3 {
        let head = relay.read_messages(1).await;
        assert_eq!(head[0].id, read[0].id);
        let report = relay.settle_as(&retry(Duration::ZERO), &head).await?;
        assert!(report.freed.is_empty());
        assert!(is_held(&scene, read[1].id).await? && is_held(&scene, read[2].id).await?);
    }
    Ok(())
}

async fn followers_that_were_let_go_are_held_back_when_one_fails(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 5).await?;
    fail_head(&mut relay, &read, retry(Duration::ZERO)).await?;
    let head = relay.read_messages(1).await;
    relay.deliver(&head).await?;
    // All four are due. The first of them fails: those behind it must not be read before it is tried again.
    let page = relay.read(100).await?;
    let due: Vec<Outgoing> = page.rows.into_iter().map(super::manual_relay::message).collect();
    relay.settle_as(&retry(LATER), &due[..1]).await?;
    relay.forgotten = due[1..].iter().map(|outgoing| outgoing.row_ref.clone()).collect();
    for outgoing in &read[2..] {
        assert!(is_held(&scene, outgoing.id).await?, "it would overtake");
    }
    relay.read_nothing().await;
    Ok(())
}

async fn one_that_went_ahead_lets_nobody_pass_the_head(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 4).await?;
    fail_head(&mut relay, &read, retry(Duration::ZERO)).await?;
    let head = relay.read_messages(1).await;
    relay.deliver(&head).await?;
    // The next one fails, and the one behind it was with the sink already.
    let due = relay.read_messages(3).await;
    relay.settle_as(&retry(LATER), &due[..1]).await?;
    relay.deliver(&due[1..2]).await?;
    assert!(is_held(&scene, read[3].id).await?, "the one before it is not tried yet");
    Ok(())
}

async fn a_head_whose_sink_is_down_blocks_its_followers(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 3).await?;
    fail_head(&mut relay, &read, waiting(RetryState::Deferred, Duration::ZERO)).await?;
    assert!(is_held(&scene, read[1].id).await? && is_held(&scene, read[2].id).await?);
    let head = relay.read_messages(1).await;
    relay.deliver(&head).await?;
    assert_eq!(ids(&relay.read_messages(2).await), ids(&read[1..]));
    Ok(())
}

async fn a_parked_head_lets_its_followers_go(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 3).await?;
    fail_head(&mut relay, &read, waiting(RetryState::Parked, LATER)).await?;
    let (mut arrived, mut freed) = (Vec::new(), 0);
    while arrived.len() < 2 {
        // Both at once, or one after the other.
        let page = relay.read(10).await?;
        let due: Vec<Outgoing> = page.rows.into_iter().map(super::manual_relay::message).collect();
        freed += relay.deliver(&due).await?.freed.len();
        arrived.extend(ids(&due));
    }
    assert_eq!((arrived, freed), (ids(&read[1..]), 1), "what is parked blocks nothing");
    assert!(scene.subject.relay.blocked_keys(&relay.lanes()).await?.is_empty());
    Ok(())
}

async fn a_head_that_is_parked_later_lets_its_followers_go(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 3).await?;
    fail_head(&mut relay, &read, retry(Duration::ZERO)).await?;
    let head = relay.read_messages(1).await;
    let report = relay.settle_as(&waiting(RetryState::Parked, LATER), &head).await?;
    assert!(report.woke);
    let followers = relay.read_messages(2).await;
    assert_eq!(ids(&followers), ids(&read[1..]));
    let report = relay.deliver(&followers).await?;
    assert_eq!(report.freed.len(), 1, "what is parked blocks nothing");
    assert!(scene.subject.relay.blocked_keys(&relay.lanes()).await?.is_empty());
    Ok(())
}

async fn a_scheduled_message_blocks_nobody(scene: Scene) -> CaseResult {
    scene.emit([numbered("k", 0).delay(LATER)]).await?;
    let (mut relay, read) = key_in_flight(&scene, 2).await?;
    assert!(scene.subject.relay.blocked_keys(&relay.lanes()).await?.is_empty());
    relay.settle_as(&Verdict::Blocked, &read[..1]).await?;
    assert!(!is_held(&scene, read[0].id).await?);
    Ok(())
}

async fn other_keys_and_other_deliveries_are_not_held(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 2).await?;
    // So many that some share its lane.
    scene.emit((0..300).map(|n| numbered(&format!("other {n}"), n))).await?;
    scene.emit((0..4200).map(|_| plain("keyless"))).await?;
    relay.settle_as(&retry(LATER), &read[..1]).await?;
    let mut others = relay.read_messages(4500).await;
    others.retain(|other| other.row_ref.lane == read[0].row_ref.lane);
    assert!(others.iter().any(|other| other.key.is_some()) && others.iter().any(|other| other.key.is_none()));
    relay.settle_as(&Verdict::Blocked, &others).await?;
    let elsewhere = relay.settlement(&read[1], vec![sink("another", Verdict::Blocked)]);
    relay.settle(&[elsewhere]).await?;
    let due: BTreeSet<Uuid> = relay
        .read_messages(others.len() + 1)
        .await
        .iter()
        .map(|outgoing| outgoing.id)
        .collect();
    assert_eq!(
        due,
        others.iter().chain(&read[1..]).map(|outgoing| outgoing.id).collect()
    );
    Ok(())
}

async fn blocked_keys_are_those_that_wait_or_block(scene: Scene) -> CaseResult {
    let verdicts = [
        ("retry", Some(retry(LATER))),
        ("down", Some(waiting(RetryState::Deferred, LATER))),
        ("parked", Some(waiting(RetryState::Parked, LATER))),
        ("dead", Some(dead(DeadReason::Permanent, false))),
        ("blocking", Some(dead(DeadReason::Permanent, true))),
        ("delivered", Some(Verdict::Delivered)),
        ("ready", None),
    ];
    scene.emit(verdicts.iter().map(|(key, _)| numbered(key, 0))).await?;
    scene
        .emit([numbered("scheduled", 0).delay(LATER), plain("keyless")])
        .await?;
    let mut relay = scene.relay().await?;
    for outgoing in relay.read_messages(verdicts.len() + 1).await {
        let verdict = match &outgoing.key {
            Some(key) => verdicts
                .iter()
                .find(|(of, _)| of == key)
                .and_then(|(_, verdict)| verdict.clone()),
            None => Some(retry(LATER)),
        };
        if let Some(verdict) = verdict {
            relay.settle_as(&verdict, &[outgoing]).await?;
        }
    }
    // A second row of a key that waits already: one entry still.
    scene.emit([numbered("retry", 1)]).await?;
    let follower = relay.read_messages(1).await;
    relay.settle_as(&Verdict::Blocked, &follower).await?;
    let mut blocked = scene.subject.relay.blocked_keys(&relay.lanes()).await?;
    blocked.sort();
    let mut keys: Vec<&str> = blocked.iter().map(|blocked| &*blocked.key).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["blocking", "down", "retry"]);
    assert!(blocked.iter().all(|blocked| &*blocked.sink == "sink"));
    // Lane by lane it is the same.
    let lane = blocked[0].lane;
    let of_lane: Vec<&BlockedKey> = blocked.iter().filter(|blocked| blocked.lane == lane).collect();
    let mut asked = scene.subject.relay.blocked_keys(&[lane]).await?;
    asked.sort();
    assert_eq!(asked.iter().collect::<Vec<_>>(), of_lane);
    assert!(scene.subject.relay.blocked_keys(&[]).await?.is_empty());
    Ok(())
}

async fn a_key_is_reported_free_when_nothing_of_it_is_left(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 3).await?;
    fail_head(&mut relay, &read, retry(Duration::ZERO)).await?;
    let expected = BlockedKey {
        lane: read[0].row_ref.lane,
        key: "k".into(),
        sink: "sink".into(),
    };
    let head = relay.read_messages(1).await;
    assert!(relay.deliver(&head).await?.freed.is_empty());
    let rest = relay.read_messages(2).await;
    assert!(
        relay
            .settle_as(&dead(DeadReason::Exhausted, false), &rest[..1])
            .await?
            .freed
            .is_empty()
    );
    assert_eq!(relay.deliver(&rest[1..]).await?.freed, [expected]);
    assert!(scene.subject.relay.blocked_keys(&relay.lanes()).await?.is_empty());
    Ok(())
}

async fn a_blocked_row_that_nothing_blocks_is_released(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 3).await?;
    fail_head(&mut relay, &read, retry(LATER)).await?;
    assert_eq!(relay.store.release_orphans(relay.owner, &relay.lanes()).await?, 0);
    let remove =
        "DELETE FROM outbox_waiting WHERE seq = (SELECT seq FROM (SELECT min(seq) AS seq FROM outbox_waiting) AS it)";
    assert_eq!(scene.subject.database.execute(remove).await?, 1);
    assert!(relay.store.release_orphans(relay.owner, &relay.lanes()).await? >= 1);
    let mut arrived = Vec::new();
    while arrived.len() < 2 {
        let due = super::manual_relay::message(relay.read(1).await?.rows.remove(0));
        arrived.push(due.id);
        relay.deliver(&[due]).await?;
    }
    assert_eq!(arrived, ids(&read[1..]));
    Ok(())
}

async fn a_blocked_row_that_something_blocks_is_not_released(scene: Scene) -> CaseResult {
    let heads = [
        retry(LATER),
        waiting(RetryState::Deferred, LATER),
        dead(DeadReason::Permanent, true),
    ];
    for (n, head) in heads.into_iter().enumerate() {
        scene.emit_key(&format!("k{n}"), 3).await?;
        let mut relay = scene.relay().await?;
        let read = relay.read_messages(3).await;
        fail_head(&mut relay, &read, head).await?;
        assert_eq!(relay.store.release_orphans(relay.owner, &relay.lanes()).await?, 0);
        assert!(is_held(&scene, read[1].id).await? && is_held(&scene, read[2].id).await?);
        relay.store.deregister(relay.owner).await?;
    }
    Ok(())
}

async fn only_the_owner_lets_go_of_orphans(scene: Scene) -> CaseResult {
    let (mut relay, read) = key_in_flight(&scene, 2).await?;
    fail_head(&mut relay, &read, retry(LATER)).await?;
    let remove =
        "DELETE FROM outbox_waiting WHERE seq = (SELECT seq FROM (SELECT min(seq) AS seq FROM outbox_waiting) AS it)";
    scene.subject.database.execute(remove).await?;
    let stranger = scene.idle_relay().await?;
    assert_eq!(stranger.store.release_orphans(stranger.owner, &relay.lanes()).await?, 0);
    assert!(is_held(&scene, read[1].id).await?);
    assert_eq!(relay.store.release_orphans(relay.owner, &relay.lanes()).await?, 1);
    Ok(())
}
