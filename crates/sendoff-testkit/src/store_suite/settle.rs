//! Settling, from each table: delivered, split into deliveries, kept, and twice.

use std::time::Duration;

use sendoff::store::{Backlog, Command, DeadReason, RetryState, Status, Table, Verdict};

use super::Setup;
use super::manual_relay::{dead, retry, sink, waiting};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, numbered, plain};

const KEEPING: Setup = Setup {
    keep_delivered: true,
    ..Setup::PLAIN
};

cases![
    what_is_delivered_is_gone,
    what_is_delivered_is_kept_where_there_is_a_retention with KEEPING,
    settling_works_the_same_where_there_is_a_retention with KEEPING,
    many_rows_of_many_lanes_are_settled_at_once,
    a_ready_row_splits_into_its_deliveries,
    a_ready_row_splits_into_its_deliveries_where_there_is_a_retention with KEEPING,
    an_unrouted_waiting_row_splits_into_its_deliveries,
    an_unrouted_waiting_row_splits_into_its_deliveries_where_there_is_a_retention with KEEPING,
    each_delivery_goes_its_own_way,
    settling_twice_is_harmless,
    settling_what_is_gone_is_harmless,
    settling_nothing_is_harmless,
    a_row_emitted_after_the_read_is_not_settled_with_it,
];

const AGAIN: Duration = Duration::from_secs(3600);

async fn what_is_delivered_is_gone(scene: Scene) -> CaseResult {
    scene
        .emit([
            plain("ready"),
            plain("waits"),
            plain("scheduled").delay(Duration::from_millis(1)),
        ])
        .await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(3).await;
    let waits: Vec<_> = read
        .iter()
        .filter(|outgoing| outgoing.topic == "waits")
        .cloned()
        .collect();
    relay.settle_as(&retry(Duration::ZERO), &waits).await?;
    let mut rest: Vec<_> = read.into_iter().filter(|outgoing| outgoing.topic != "waits").collect();
    rest.extend(relay.read_messages(1).await);
    assert_eq!(
        rest.iter()
            .filter(|outgoing| outgoing.row_ref.table == Table::Waiting)
            .count(),
        2
    );
    let report = relay.deliver(&rest).await?;
    assert!(report.lost.is_empty() && report.freed.is_empty());
    assert_eq!(scene.subject.relay.backlog().await?, Backlog::default());
    assert!(
        scene
            .subject
            .operate
            .list(&Default::default(), 10)
            .await?
            .messages
            .is_empty()
    );
    relay.read_nothing().await;
    Ok(())
}

async fn what_is_delivered_is_kept_where_there_is_a_retention(scene: Scene) -> CaseResult {
    let before = scene.now().await?;
    let emitted = scene
        .emit([
            numbered("k", 7).header("a", "b"),
            plain("waits"),
            plain("u").delay(Duration::from_millis(1)),
        ])
        .await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(3).await;
    let (waits, at_once): (Vec<_>, Vec<_>) = read.into_iter().partition(|outgoing| outgoing.topic == "waits");
    relay.deliver(&at_once).await?;
    relay.settle_as(&retry(Duration::ZERO), &waits).await?;
    let due = relay.read_messages(1).await;
    relay.deliver(&due).await?;
    assert_eq!(scene.count(Status::Delivered).await?, 3);
    let summary = scene.subject.operate.summary().await?;
    // The one that waits is the clock's.
    assert_eq!(
        (summary.ready, summary.waiting, summary.dead, summary.delivered),
        (0, 1, 0, 3)
    );
    let kept = scene.find_one(emitted[0].id()).await?;
    assert_eq!(
        (kept.status, kept.payload.as_slice(), kept.attempts),
        (Status::Delivered, &b"7"[..], 0)
    );
    assert_eq!(
        (kept.key.as_deref(), kept.topic.as_str()),
        (Some("k"), "suite.numbered")
    );
    assert!(kept.headers.as_deref().is_some_and(|headers| headers.contains("\"b\"")));
    assert!(kept.ended_at.is_some_and(|at| at >= before));
    let kept = scene.find_one(emitted[1].id()).await?;
    assert_eq!(
        (kept.status, kept.sink.as_str(), kept.attempts),
        (Status::Delivered, "sink", 1)
    );
    // Kept rows are history: they neither come back nor come again.
    assert_eq!(
        scene
            .subject
            .operate
            .retry_dead(&Default::default(), None, usize::MAX, &mut Command::by("suite"))
            .await?,
        0
    );
    relay.read_nothing().await;
    Ok(())
}

async fn settling_works_the_same_where_there_is_a_retention(scene: Scene) -> CaseResult {
    scene.emit_key("k", 4).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(4).await;
    let settlements = [
        relay.settlement(&read[0], vec![]),
        relay.settlement(&read[1], vec![sink("sink", retry(Duration::ZERO))]),
        relay.settlement(&read[2], vec![sink("sink", Verdict::Blocked)]),
        relay.settlement(&read[3], vec![sink("sink", Verdict::Blocked)]),
    ];
    assert!(relay.settle(&settlements).await?.lost.is_empty());
    let head = relay.read_messages(1).await;
    assert_eq!(head[0].id, read[1].id);
    let report = relay.deliver(&head).await?;
    assert!(report.woke && report.freed.is_empty());
    let rest = relay.read_messages(2).await;
    assert_eq!([rest[0].id, rest[1].id], [read[2].id, read[3].id]);
    assert_eq!(relay.deliver(&rest).await?.freed.len(), 1);
    assert_eq!(scene.count(Status::Delivered).await?, 4);
    assert_eq!(scene.subject.relay.backlog().await?, Backlog::default());
    Ok(())
}

async fn many_rows_of_many_lanes_are_settled_at_once(scene: Scene) -> CaseResult {
    const COUNT: usize = 2000;
    scene
        .emit((0..COUNT).map(|n| numbered(&format!("k{}", n % 200), n)))
        .await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(COUNT).await;
    let (even, odd): (Vec<_>, Vec<_>) = read.into_iter().partition(|outgoing| outgoing.row_ref.seq % 2 == 0);
    relay.deliver(&even).await?;
    assert_eq!(scene.subject.relay.backlog().await?.ready, odd.len() as u64);
    relay.deliver(&odd).await?;
    assert_eq!(scene.subject.relay.backlog().await?, Backlog::default());
    Ok(())
}

async fn a_ready_row_splits_into_its_deliveries(scene: Scene) -> CaseResult {
    split_ready(scene, &[]).await
}

async fn a_ready_row_splits_into_its_deliveries_where_there_is_a_retention(scene: Scene) -> CaseResult {
    split_ready(scene, &["done"]).await
}

async fn an_unrouted_waiting_row_splits_into_its_deliveries(scene: Scene) -> CaseResult {
    split_unrouted(scene, &[]).await
}

async fn an_unrouted_waiting_row_splits_into_its_deliveries_where_there_is_a_retention(scene: Scene) -> CaseResult {
    split_unrouted(scene, &["done"]).await
}

async fn split_ready(scene: Scene, kept: &[&str]) -> CaseResult {
    let id = scene.emit([numbered("k", 0)]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    check_split(&scene, &mut relay, id, &read[0], kept).await
}

async fn split_unrouted(scene: Scene, kept: &[&str]) -> CaseResult {
    let id = scene.emit([numbered("k", 0).delay(Duration::from_millis(1))]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    assert_eq!((read[0].row_ref.table, &read[0].row_ref.sink), (Table::Waiting, &None));
    check_split(&scene, &mut relay, id, &read[0], kept).await
}

/// Five deliveries that wait or died, and one that was delivered, which is to be seen if it is kept.
async fn check_split(
    scene: &Scene,
    relay: &mut super::manual_relay::ManualRelay,
    id: sendoff::Uuid,
    outgoing: &sendoff::Outgoing,
    kept: &[&str],
) -> CaseResult {
    let deliveries = vec![
        sink("done", Verdict::Delivered),
        sink("again", retry(AGAIN)),
        sink("down", waiting(RetryState::Deferred, AGAIN)),
        sink("parked", waiting(RetryState::Parked, AGAIN)),
        sink("dead", dead(DeadReason::Permanent, false)),
        sink("held", Verdict::Blocked),
    ];
    relay.settle(&[relay.settlement(outgoing, deliveries)]).await?;
    let found = scene.subject.operate.find(id).await?;
    assert_eq!(found.len(), 5 + kept.len(), "{found:#?}");
    for name in kept {
        let stored = scene.find_delivery(id, name).await?;
        assert_eq!(
            (stored.status, stored.attempts, stored.payload.as_slice()),
            (Status::Delivered, 0, &b"0"[..])
        );
    }
    for (name, status, detail, attempts) in [
        ("again", Status::Retry, "retry", 1),
        ("down", Status::Deferred, "deferred", 1),
        ("parked", Status::Retry, "parked", 1),
        ("dead", Status::Dead, "permanent", 1),
        ("held", Status::Pending, "blocked", 0),
    ] {
        let stored = scene.find_delivery(id, name).await?;
        assert_eq!(
            (stored.status, stored.detail.as_deref()),
            (status, Some(detail)),
            "{name}"
        );
        assert_eq!(
            (stored.attempts, stored.seq, stored.lane),
            (attempts, outgoing.row_ref.seq, i64::from(outgoing.row_ref.lane))
        );
        assert_eq!(
            (stored.key.as_deref(), stored.payload.as_slice()),
            (Some("k"), &b"0"[..])
        );
    }
    // Nothing else of its key and delivery is there, so nothing holds it.
    let due = relay.read_messages(1).await;
    assert_eq!(due[0].row_ref.sink.as_deref(), Some("held"));
    Ok(())
}

async fn each_delivery_goes_its_own_way(scene: Scene) -> CaseResult {
    let id = scene.emit([plain("t")]).await?[0].id();
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(1).await;
    let both = ["a", "b"].map(|name| sink(name, retry(Duration::ZERO)));
    relay.settle(&[relay.settlement(&read[0], both.to_vec())]).await?;
    let due = relay.read_messages(2).await;
    let of = |name: &str| {
        due.iter()
            .find(|outgoing| outgoing.row_ref.sink.as_deref() == Some(name))
            .expect("a delivery")
            .clone()
    };
    relay.settle_as(&retry(AGAIN), &[of("a")]).await?;
    assert_eq!(
        (
            scene.find_delivery(id, "a").await?.attempts,
            scene.find_delivery(id, "b").await?.attempts
        ),
        (2, 1)
    );
    relay.settle_as(&dead(DeadReason::Exhausted, false), &[of("b")]).await?;
    assert_eq!(scene.find_delivery(id, "a").await?.status, Status::Retry);
    assert_eq!(scene.find_delivery(id, "b").await?.status, Status::Dead);
    Ok(())
}

async fn settling_twice_is_harmless(scene: Scene) -> CaseResult {
    let emitted = scene.emit([plain("delivered"), plain("again"), plain("dead")]).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(3).await;
    let settlements: Vec<_> = read
        .iter()
        .map(|outgoing| {
            let deliveries = match outgoing.topic.as_str() {
                "delivered" => vec![],
                "again" => vec![sink("sink", retry(Duration::ZERO))],
                _ => vec![sink("sink", dead(DeadReason::Permanent, false))],
            };
            relay.settlement(outgoing, deliveries)
        })
        .collect();
    for _ in 0..3 {
        assert!(relay.settle(&settlements).await?.lost.is_empty());
    }
    assert!(scene.subject.operate.find(emitted[0].id()).await?.is_empty());
    assert_eq!(
        scene.find_one(emitted[1].id()).await?.attempts,
        1,
        "the ready row is gone: there is nothing to charge"
    );
    assert_eq!(scene.find_one(emitted[2].id()).await?.attempts, 1);
    let due = relay.read_messages(1).await;
    let kill = relay.settlement(&due[0], vec![sink("sink", dead(DeadReason::Exhausted, true))]);
    for _ in 0..3 {
        relay.settle(std::slice::from_ref(&kill)).await?;
    }
    assert_eq!(scene.find_one(emitted[1].id()).await?.attempts, 2);
    assert_eq!(scene.subject.relay.backlog().await?.dead, 2);
    Ok(())
}

async fn settling_what_is_gone_is_harmless(scene: Scene) -> CaseResult {
    scene.emit([numbered("k", 0), numbered("k", 1)]).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(2).await;
    relay.deliver(&read[..1]).await?;
    for verdict in [
        Verdict::Blocked,
        retry(AGAIN),
        dead(DeadReason::Permanent, true),
        Verdict::Delivered,
    ] {
        relay.settle_as(&verdict, &read[..1]).await?;
        let mut waits = read[0].clone();
        (waits.row_ref.table, waits.row_ref.sink) = (Table::Waiting, Some("sink".into()));
        relay.settle_as(&verdict, &[waits]).await?;
    }
    let backlog = scene.subject.relay.backlog().await?;
    assert_eq!(
        backlog,
        Backlog {
            ready: 1,
            ..Backlog::default()
        }
    );
    Ok(())
}

async fn settling_nothing_is_harmless(scene: Scene) -> CaseResult {
    let mut relay = scene.relay().await?;
    assert_eq!(relay.settle(&[]).await?, Default::default());
    Ok(())
}

async fn a_row_emitted_after_the_read_is_not_settled_with_it(scene: Scene) -> CaseResult {
    scene.emit_key("k", 3).await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(3).await;
    scene.emit_key("k", 3).await?;
    // The first and the last: what lies between them is not theirs.
    relay.deliver(&[read[0].clone(), read[2].clone()]).await?;
    assert_eq!(scene.subject.relay.backlog().await?.ready, 4);
    relay.read_messages(3).await;
    Ok(())
}
