//! Keys that are blocked, how an operator lets them go on, and lanes.

use std::time::Duration;

use sendoff::store::{Command, DeadReason, Filter, Status, Verdict};
use sendoff::{Outgoing, Uuid};

use super::manual_relay::{ManualRelay, dead, retry, sink};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, plain};

cases![
    a_blocked_key_is_shown_with_whom_it_waits_for,
    a_key_that_waits_for_nobody_is_not_shown,
    the_keys_with_the_most_held_messages_come_first,
    a_discarded_dead_letter_lets_its_followers_go,
    a_discarded_unrouted_dead_letter_lets_followers_of_every_delivery_go,
    a_key_stays_blocked_by_the_other_dead_letter,
    a_released_key_goes_on_and_its_letter_stays,
    a_key_is_released_for_one_delivery,
    a_released_letter_can_be_retried,
    lanes_are_shown_with_their_owners_and_messages,
];

const LATER: Duration = Duration::from_secs(3600);

fn ids(read: &[Outgoing]) -> Vec<Uuid> {
    read.iter().map(|outgoing| outgoing.id).collect()
}

/// Messages of one key of which the first gets this verdict, and the others wait behind it.
async fn blocked(
    scene: &Scene,
    relay: &mut ManualRelay,
    key: &str,
    count: usize,
    first: &Verdict,
) -> sendoff::Result<Vec<Outgoing>> {
    scene.emit_key(key, count).await?;
    let read = relay.read_messages(count).await;
    relay.settle_as(first, &read[..1]).await?;
    relay.settle_as(&Verdict::Blocked, &read[1..]).await?;
    for held in &read[1..] {
        assert_eq!(scene.find_one(held.id).await?.due_at, None);
    }
    Ok(read)
}

async fn a_blocked_key_is_shown_with_whom_it_waits_for(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    let retried = blocked(&scene, &mut relay, "retried", 4, &retry(LATER)).await?;
    let died = blocked(&scene, &mut relay, "died", 2, &dead(DeadReason::Permanent, true)).await?;
    let keys = scene.subject.operate.keys(10).await?;
    assert_eq!(keys.len(), 2, "{keys:#?}");
    let (one, other) = (&keys[0], &keys[1]);
    assert_eq!(
        (one.key.as_str(), one.sink.as_str(), one.blocked),
        ("retried", "sink", 3)
    );
    assert_eq!((one.head, one.state.as_str()), (Some(retried[0].id), "retry"));
    assert_eq!(one.due_at, scene.find_one(retried[0].id).await?.due_at);
    assert_eq!(one.last_error.as_deref(), Some("it failed"));
    assert_eq!(one.lane, i64::from(retried[0].row_ref.lane));
    assert_eq!((other.key.as_str(), other.blocked, other.due_at), ("died", 1, None));
    assert_eq!((other.head, other.state.as_str()), (Some(died[0].id), "dead"));
    assert_eq!(other.last_error.as_deref(), Some("it is hopeless"));
    Ok(())
}

async fn a_key_that_waits_for_nobody_is_not_shown(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    scene.emit_key("ready", 2).await?;
    let read = relay.read_messages(2).await;
    relay.settle_as(&retry(LATER), &read[..1]).await?;
    relay.deliver(&read[1..]).await?;
    scene.emit([plain("t").delay(LATER).key("later")]).await?;
    assert_eq!(scene.subject.operate.keys(10).await?, []);
    Ok(())
}

async fn the_keys_with_the_most_held_messages_come_first(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    for (key, count) in [("b", 3), ("c", 2), ("a", 4)] {
        blocked(&scene, &mut relay, key, count, &retry(LATER)).await?;
    }
    let keys = scene.subject.operate.keys(2).await?;
    let short: Vec<_> = keys.iter().map(|key| (key.key.as_str(), key.blocked)).collect();
    assert_eq!(short, [("a", 3), ("b", 2)]);
    Ok(())
}

async fn a_discarded_dead_letter_lets_its_followers_go(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    let read = blocked(&scene, &mut relay, "k", 4, &dead(DeadReason::Permanent, true)).await?;
    let all = Filter::default();
    assert_eq!(
        scene
            .subject
            .operate
            .discard_dead(&all, None, usize::MAX, &mut Command::by("suite"))
            .await?,
        1
    );
    let followers = relay.read_messages(3).await;
    assert_eq!(ids(&followers), ids(&read[1..]));
    assert_eq!(relay.deliver(&followers).await?.freed.len(), 1);
    assert_eq!(scene.subject.operate.keys(10).await?, []);
    Ok(())
}

async fn a_discarded_unrouted_dead_letter_lets_followers_of_every_delivery_go(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    scene.emit_key("k", 2).await?;
    let read = relay.read_messages(2).await;
    let unrouted = vec![sink("", dead(DeadReason::Unroutable, true))];
    relay.settle(&[relay.settlement(&read[0], unrouted)]).await?;
    let deliveries = vec![sink("a", Verdict::Blocked), sink("b", Verdict::Blocked)];
    relay.settle(&[relay.settlement(&read[1], deliveries)]).await?;
    relay.read_nothing().await;
    let all = Filter::default();
    assert_eq!(
        scene
            .subject
            .operate
            .discard_dead(&all, None, usize::MAX, &mut Command::by("suite"))
            .await?,
        1
    );
    let mut deliveries: Vec<_> = relay
        .read_messages(2)
        .await
        .into_iter()
        .map(|read| read.row_ref.sink)
        .collect();
    deliveries.sort();
    assert_eq!(deliveries, [Some("a".into()), Some("b".into())]);
    Ok(())
}

async fn a_key_stays_blocked_by_the_other_dead_letter(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    scene.emit_key("k", 3).await?;
    let read = relay.read_messages(3).await;
    relay.settle_as(&dead(DeadReason::Permanent, true), &read[..2]).await?;
    relay.settle_as(&Verdict::Blocked, &read[2..]).await?;
    for (discarded, due) in [(0, false), (1, true)] {
        let one = Filter {
            ids: vec![read[discarded].id],
            ..Filter::default()
        };
        assert_eq!(
            scene
                .subject
                .operate
                .discard_dead(&one, None, usize::MAX, &mut Command::by("suite"))
                .await?,
            1
        );
        assert_eq!(scene.find_one(read[2].id).await?.due_at.is_some(), due);
    }
    Ok(())
}

async fn a_released_key_goes_on_and_its_letter_stays(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    let read = blocked(&scene, &mut relay, "k", 3, &dead(DeadReason::Permanent, true)).await?;
    blocked(&scene, &mut relay, "other", 2, &dead(DeadReason::Permanent, true)).await?;
    let operate = &scene.subject.operate;
    assert_eq!(operate.release_key("nobody", None, "suite").await?, 0);
    assert_eq!(operate.release_key("k", None, "suite").await?, 1);
    assert_eq!(operate.release_key("k", None, "suite").await?, 0);
    let followers = relay.read_messages(2).await;
    assert_eq!(ids(&followers), ids(&read[1..]));
    assert_eq!(relay.deliver(&followers).await?.freed.len(), 1);
    assert_eq!(scene.find_one(read[0].id).await?.status, Status::Dead);
    let keys = operate.keys(10).await?;
    assert_eq!((keys.len(), keys[0].key.as_str()), (1, "other"));
    // What comes now is not held any more.
    let (lane, lanes) = (read[0].row_ref.lane, relay.lanes());
    let blocked = scene.subject.relay.blocked_keys(&lanes).await?;
    assert!(!blocked.iter().any(|key| key.lane == lane && &*key.key == "k"));
    Ok(())
}

async fn a_key_is_released_for_one_delivery(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    scene.emit_key("k", 2).await?;
    let read = relay.read_messages(2).await;
    for (outgoing, verdict) in read.iter().zip([dead(DeadReason::Permanent, true), Verdict::Blocked]) {
        let deliveries = vec![sink("a", verdict.clone()), sink("b", verdict)];
        relay.settle(&[relay.settlement(outgoing, deliveries)]).await?;
    }
    let operate = &scene.subject.operate;
    assert_eq!(operate.release_key("k", Some("c"), "suite").await?, 0);
    assert_eq!(operate.release_key("k", Some("a"), "suite").await?, 1);
    let due = relay.read_messages(1).await;
    assert_eq!((due[0].id, due[0].row_ref.sink.as_deref()), (read[1].id, Some("a")));
    assert_eq!(scene.find_delivery(read[1].id, "b").await?.due_at, None);
    Ok(())
}

async fn a_released_letter_can_be_retried(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    let read = blocked(&scene, &mut relay, "k", 1, &dead(DeadReason::Permanent, true)).await?;
    scene.subject.operate.release_key("k", None, "suite").await?;
    let retried = scene
        .subject
        .operate
        .retry_dead(&Filter::default(), None, 1, &mut Command::by("suite"))
        .await?;
    assert_eq!(retried, 1);
    assert_eq!(ids(&relay.read_messages(1).await), ids(&read));
    Ok(())
}

async fn lanes_are_shown_with_their_owners_and_messages(scene: Scene) -> CaseResult {
    scene.emit_key("k", 3).await?;
    let lanes = scene.subject.operate.lane_views().await?;
    assert_eq!(lanes.len(), usize::from(scene.subject.relay.lanes()));
    for (n, lane) in (0..).zip(&lanes) {
        assert_eq!((lane.lane, lane.owner, &lane.relay, lane.until), (n, None, &None, None));
    }
    let ready: Vec<u64> = lanes.iter().map(|lane| lane.ready).filter(|ready| *ready > 0).collect();
    assert_eq!(ready, [3]);
    let mut relay = scene.idle_relay().await?;
    let grants = relay.acquire(5).await?;
    let now = scene.now().await?;
    let lanes = scene.subject.operate.lane_views().await?;
    let owned: Vec<_> = lanes.iter().filter(|lane| lane.owner.is_some()).collect();
    assert_eq!(owned.len(), 5);
    for (lane, grant) in owned.into_iter().zip(&grants) {
        assert_eq!(
            (lane.lane, lane.epoch, lane.owner),
            (grant.lane.into(), grant.epoch, Some(relay.owner.0))
        );
        assert_eq!((lane.relay.as_deref(), lane.crashes), (Some("by hand"), 0));
        assert!(lane.until.is_some_and(|until| until > now));
    }
    Ok(())
}
