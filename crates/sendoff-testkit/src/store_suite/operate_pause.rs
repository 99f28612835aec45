//! Pauses of topics and sinks.

use std::time::Duration;

use sendoff::store::{Pausable, RetryState, Settlement, Verdict};

use super::manual_relay::{self, ManualRelay};
use super::registry::{CaseResult, cases};
use super::scene::{Scene, TICK, persistently, plain};

cases![
    a_pause_is_set_once_and_ended_once,
    pauses_are_shown_with_when_and_by_whom,
    resuming_a_topic_makes_its_messages_due,
    what_is_made_to_wait_for_a_pause_that_is_over_is_due_at_once,
    no_message_waits_for_a_pause_that_ends_at_the_same_moment,
    resuming_a_sink_touches_no_message,
    pausing_is_in_the_audit,
];

const INVOICES: &str = "invoice.{sent,paid}";

const LATER: Duration = Duration::from_secs(3600);

fn topic(name: &str) -> Pausable {
    Pausable::Topic(name.into())
}

fn paused(by: &str) -> Verdict {
    Verdict::Paused { by: by.into() }
}

fn sink(name: &str) -> Pausable {
    Pausable::Sink(name.into())
}

async fn a_pause_is_set_once_and_ended_once(scene: Scene) -> CaseResult {
    let operate = &scene.subject.operate;
    // A topic and a sink of one name are two things.
    for what in [topic("audit"), sink("audit")] {
        assert!(operate.pause(&what, "ann").await?);
        assert!(!operate.pause(&what, "bob").await?);
    }
    let mut paused = scene.subject.relay.paused().await?;
    paused.sort();
    let pair = |kind: &str| (kind.to_owned(), "audit".to_owned());
    assert_eq!(paused, [pair("sink"), pair("topic")]);
    assert!(operate.resume(&topic("audit"), "ann").await?);
    assert!(!operate.resume(&topic("audit"), "ann").await?);
    assert_eq!(scene.subject.relay.paused().await?, [pair("sink")]);
    assert!(operate.pause(&topic("audit"), "ann").await?, "it can be paused again");
    Ok(())
}

async fn pauses_are_shown_with_when_and_by_whom(scene: Scene) -> CaseResult {
    let operate = &scene.subject.operate;
    assert_eq!(operate.pauses().await?, []);
    let before = scene.now().await?;
    operate.pause(&topic("order.*"), "ann").await?;
    operate.pause(&topic("order.*"), "bob").await?;
    tokio::time::sleep(TICK).await;
    operate.pause(&sink("rabbit"), "bob").await?;
    let after = scene.now().await?;
    let pauses = operate.pauses().await?;
    let short: Vec<_> = pauses
        .iter()
        .map(|pause| (pause.what.clone(), pause.by.as_str()))
        .collect();
    assert_eq!(short, [(topic("order.*"), "ann"), (sink("rabbit"), "bob")]);
    assert!(
        pauses
            .iter()
            .all(|pause| pause.since + TICK >= before && pause.since <= after + TICK)
    );
    Ok(())
}

/// Messages that wait because of a pause, as the relay settles them, and one that waits for its sink.
async fn stopped(scene: &Scene) -> sendoff::Result<ManualRelay> {
    for paused in ["order.*", INVOICES] {
        assert!(scene.subject.operate.pause(&topic(paused), "suite").await?);
    }
    scene
        .emit([plain("order.placed"), plain("order.down"), plain("invoice.sent")])
        .await?;
    let mut relay = scene.relay().await?;
    for outgoing in relay.read_messages(3).await {
        let waits = match outgoing.topic.as_str() {
            "order.down" => Verdict::Retry {
                state: RetryState::Deferred,
                delay: LATER,
                charged: false,
                error: "connection refused".into(),
            },
            "order.placed" => paused("order.*"),
            _ => paused(INVOICES),
        };
        relay.settle_as(&waits, &[outgoing]).await?;
    }
    relay.read_nothing().await;
    Ok(relay)
}

async fn resuming_a_topic_makes_its_messages_due(scene: Scene) -> CaseResult {
    let mut relay = stopped(&scene).await?;
    let operate = &scene.subject.operate;
    assert!(!operate.resume(&topic("*"), "suite").await?);
    relay.read_nothing().await;
    operate.resume(&topic("order.*"), "suite").await?;
    assert_eq!(relay.read_messages(1).await[0].topic, "order.placed");
    relay.read_nothing().await;
    operate.resume(&topic(INVOICES), "suite").await?;
    assert_eq!(relay.read_messages(1).await[0].topic, "invoice.sent");
    relay.read_nothing().await;
    Ok(())
}

/// From every table: ready, waiting for its sink, and not routed yet.
async fn what_is_made_to_wait_for_a_pause_that_is_over_is_due_at_once(scene: Scene) -> CaseResult {
    let operate = &scene.subject.operate;
    operate.pause(&topic("order.*"), "suite").await?;
    operate.pause(&topic("*.placed"), "suite").await?;
    scene
        .emit([plain("order.placed"), plain("order.placed").delay(TICK)])
        .await?;
    let mut relay = scene.relay().await?;
    let read = relay.read_messages(2).await;
    operate.resume(&topic("order.*"), "suite").await?;
    assert!(relay.settle_as(&paused("order.*"), &read).await?.woke);
    let again = relay.read_messages(2).await;
    assert!(again.iter().all(|d| d.row_ref.sink.as_deref() == Some("sink")));
    assert!(relay.settle_as(&paused("order.*"), &again).await?.woke);
    let read = relay.read_messages(2).await;
    assert!(read.iter().all(|outgoing| outgoing.attempts == 0));
    // The other one lasts.
    let report = relay.settle_as(&paused("*.placed"), &read).await?;
    assert!(!report.woke);
    relay.read_nothing().await;
    operate.resume(&topic("*.placed"), "suite").await?;
    relay.read_messages(2).await;
    Ok(())
}

async fn no_message_waits_for_a_pause_that_ends_at_the_same_moment(scene: Scene) -> CaseResult {
    let operate = &scene.subject.operate;
    let mut relay = scene.relay().await?;
    for _ in 0..20 {
        operate.pause(&topic("order.*"), "suite").await?;
        scene.emit((0..5).map(|_| plain("order.placed"))).await?;
        let read = relay.read_messages(5).await;
        let waits = |outgoing| relay.settlement(outgoing, vec![manual_relay::sink("sink", paused("order.*"))]);
        let settlements: Vec<Settlement> = read.iter().map(waits).collect();
        let (store, owner, orders) = (relay.store.clone(), relay.owner, topic("order.*"));
        let (settled, ended) = tokio::join!(
            persistently(|| store.settle(owner, &settlements)),
            persistently(|| operate.resume(&orders, "suite")),
        );
        assert!(settled?.lost.is_empty() && ended?);
        relay.settled.extend(read.into_iter().map(|outgoing| outgoing.row_ref));
        let due = relay.read_messages(5).await;
        relay.deliver(&due).await?;
    }
    Ok(())
}

async fn resuming_a_sink_touches_no_message(scene: Scene) -> CaseResult {
    let mut relay = stopped(&scene).await?;
    let operate = &scene.subject.operate;
    operate.pause(&sink("order.*"), "suite").await?;
    operate.resume(&sink("order.*"), "suite").await?;
    relay.read_nothing().await;
    Ok(())
}

async fn pausing_is_in_the_audit(scene: Scene) -> CaseResult {
    let operate = &scene.subject.operate;
    operate.pause(&sink("rabbit"), "ann").await?;
    operate.resume(&sink("rabbit"), "bob").await?;
    operate.resume(&sink("rabbit"), "cem").await?;
    let audit = operate.audit(10).await?;
    let short: Vec<_> = audit
        .iter()
        .map(|row| (row.who.as_str(), row.action.as_str(), row.affected))
        .collect();
    assert_eq!(short, [("cem", "resume", 0), ("bob", "resume", 1), ("ann", "pause", 1)]);
    assert!(audit.iter().all(|row| row.filter.contains("rabbit")));
    Ok(())
}
