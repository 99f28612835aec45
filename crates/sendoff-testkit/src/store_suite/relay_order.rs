//! The real relay on top: the order of a key, whatever fails.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Command, Filter, RelayStore, Status};
use sendoff::{Message, Outcome, Outgoing};
use sendoff_relay::{OnFailure, Relay};

use super::registry::{CaseResult, cases};
use super::relays::{Running, arrive, numbers, pattern, policy, relay, settings, tale};
use super::scene::{Scene, eventually, numbered};
use crate::{Act, ScriptedSink};

cases![
    a_failed_head_is_retried_before_its_followers,
    a_blocking_dead_letter_holds_its_key_until_it_is_retried,
    a_skipped_head_lets_its_followers_go_once_it_is_dead,
    a_parked_head_is_passed_by_its_followers,
    other_keys_go_on_while_one_is_blocked,
    a_key_stays_blocked_when_its_lane_changes_hands,
    a_message_for_two_sinks_is_not_overtaken_at_the_one_that_failed,
    a_follower_for_two_sinks_is_not_overtaken_where_it_is_held,
    the_order_holds_while_a_sink_goes_down_and_comes_back,
];

fn temporary() -> Act {
    Act::Refuse(Outcome::Temporary("not now".into()))
}

fn permanent() -> Act {
    Act::Refuse(Outcome::Permanent("never".into()))
}

fn is(outgoing: &Outgoing, n: u64) -> bool {
    *outgoing.payload == *n.to_string().as_bytes()
}

fn start(store: Arc<dyn RelayStore>, sink: &Arc<ScriptedSink>, head: OnFailure) -> Running {
    Running::start(relay(store, sink).default_policy(policy(head)))
}

async fn a_failed_head_is_retried_before_its_followers(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new().script(|outgoing, copy| match copy {
        1 if is(outgoing, 0) || is(outgoing, 7) => temporary(),
        2 if is(outgoing, 7) => Act::Refuse(Outcome::Unknown("who knows".into())),
        _ => Act::Deliver,
    }));
    let running = start(scene.subject.relay.clone(), &sink, OnFailure::Block);
    // Some before, some while the first is waiting to be tried again.
    for n in 0..40 {
        scene.emit([numbered("k", n)]).await?;
        if n == 0 {
            sink.wait_until(|published| !published.is_empty()).await;
        }
    }
    arrive(&sink, 40).await;
    running.stop().await?;
    assert_eq!(numbers(&sink, "k"), (0..40).collect::<Vec<_>>(), "{}", tale(&sink, "k"));
    assert!(sink.overlaps().is_empty());
    Ok(())
}

async fn a_blocking_dead_letter_holds_its_key_until_it_is_retried(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new().script(|outgoing, copy| match copy {
        1 if is(outgoing, 2) => permanent(),
        _ => Act::Deliver,
    }));
    let running = start(scene.subject.relay.clone(), &sink, OnFailure::Block);
    scene.emit_key("k", 10).await?;
    eventually("it is a dead letter", || async {
        Ok(scene.count(Status::Dead).await? == 1)
    })
    .await?;
    eventually("the others wait", || async {
        let backlog = scene.subject.relay.backlog().await?;
        Ok(backlog.waiting == 7 && backlog.ready == 0)
    })
    .await?;
    assert_eq!(numbers(&sink, "k"), [0, 1]);
    assert_eq!(
        scene
            .subject
            .operate
            .retry_dead(&Filter::default(), None, usize::MAX, &mut Command::by("suite"))
            .await?,
        1
    );
    arrive(&sink, 10).await;
    running.stop().await?;
    assert_eq!(numbers(&sink, "k"), (0..10).collect::<Vec<_>>());
    Ok(())
}

async fn a_skipped_head_lets_its_followers_go_once_it_is_dead(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new().script(|outgoing, _| match () {
        () if is(outgoing, 2) => permanent(),
        () if is(outgoing, 5) => temporary(),
        () => Act::Deliver,
    }));
    let running = start(scene.subject.relay.clone(), &sink, OnFailure::Skip);
    scene.emit_key("k", 10).await?;
    arrive(&sink, 8).await;
    running.stop().await?;
    assert_eq!(numbers(&sink, "k"), [0, 1, 3, 4, 6, 7, 8, 9]);
    assert_eq!(scene.count(Status::Dead).await?, 2);
    Ok(())
}

async fn a_parked_head_is_passed_by_its_followers(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new().script(|outgoing, copy| match copy {
        1 | 2 if is(outgoing, 2) => temporary(),
        _ => Act::Deliver,
    }));
    let running = start(scene.subject.relay.clone(), &sink, OnFailure::Park);
    scene.emit_key("k", 10).await?;
    arrive(&sink, 10).await;
    running.stop().await?;
    let arrived = numbers(&sink, "k");
    let others: Vec<u64> = arrived.iter().copied().filter(|n| *n != 2).collect();
    assert_eq!(others, [0, 1, 3, 4, 5, 6, 7, 8, 9]);
    Ok(())
}

async fn other_keys_go_on_while_one_is_blocked(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new().script(|outgoing, _| match outgoing.key.as_deref() {
        Some("bad") => permanent(),
        _ => Act::Deliver,
    }));
    let running = start(scene.subject.relay.clone(), &sink, OnFailure::Block);
    // More keys than lanes: some share the lane of the bad one.
    for n in 0..3 {
        let keys = (0..300).map(|key| numbered(&format!("k{key}"), n));
        scene.emit([numbered("bad", n)].into_iter().chain(keys)).await?;
    }
    arrive(&sink, 900).await;
    running.stop().await?;
    assert_eq!(scene.subject.relay.backlog().await?.dead, 1);
    Ok(())
}

async fn a_key_stays_blocked_when_its_lane_changes_hands(scene: Scene) -> CaseResult {
    let sink = Arc::new(ScriptedSink::new().script(|outgoing, copy| match copy {
        1 if is(outgoing, 0) => permanent(),
        _ => Act::Deliver,
    }));
    let running = start(scene.subject.relay.clone(), &sink, OnFailure::Block);
    scene.emit_key("k", 3).await?;
    eventually("it is a dead letter", || async {
        Ok(scene.count(Status::Dead).await? == 1)
    })
    .await?;
    running.stop().await?;
    // The next relay knows of it only from the tables.
    let running = start(scene.second().await?.subject.relay, &sink, OnFailure::Block);
    scene.emit([numbered("k", 3)]).await?;
    eventually("the new one waits, too", || async {
        let backlog = scene.subject.relay.backlog().await?;
        Ok(backlog.waiting == 3 && backlog.ready == 0)
    })
    .await?;
    assert_eq!(numbers(&sink, "k"), Vec::<u64>::new());
    scene
        .subject
        .operate
        .retry_dead(&Filter::default(), None, usize::MAX, &mut Command::by("suite"))
        .await?;
    arrive(&sink, 4).await;
    running.stop().await?;
    assert_eq!(numbers(&sink, "k"), [0, 1, 2, 3]);
    Ok(())
}

/// Topics that go to a sink which refuses the first copy of number 0, and perhaps to a slow one as well. The verdicts on
/// a message are written down when both have answered.
async fn two_sinks(scene: &Scene, topics: [&str; 3]) -> CaseResult {
    let failing = Arc::new(ScriptedSink::new().script(|outgoing, copy| match copy {
        1 if is(outgoing, 0) => temporary(),
        _ => Act::Deliver,
    }));
    let slow = Arc::new(ScriptedSink::new().latency(Duration::from_millis(400)));
    let builder = Relay::builder(scene.subject.relay.clone())
        .sink("failing", failing.clone())
        .sink("slow", slow.clone())
        .route(pattern("both"), ["failing", "slow"])
        .route(pattern("one"), ["failing"])
        .default_policy(policy(OnFailure::Block))
        .settings(settings());
    let message = |(topic, n): (&str, u64)| Message::json(topic, &n).map(|message| message.key("k"));
    let messages: sendoff::Result<Vec<Message>> = topics.into_iter().zip(0..).map(message).collect();
    scene.emit(messages?).await?;
    let running = Running::start(builder);
    arrive(&failing, 3).await;
    arrive(&slow, topics.iter().filter(|topic| **topic == "both").count()).await;
    running.stop().await?;
    assert_eq!(numbers(&failing, "k"), [0, 1, 2]);
    Ok(())
}

async fn a_message_for_two_sinks_is_not_overtaken_at_the_one_that_failed(scene: Scene) -> CaseResult {
    two_sinks(&scene, ["both", "one", "one"]).await
}

async fn a_follower_for_two_sinks_is_not_overtaken_where_it_is_held(scene: Scene) -> CaseResult {
    two_sinks(&scene, ["one", "both", "one"]).await
}

async fn the_order_holds_while_a_sink_goes_down_and_comes_back(scene: Scene) -> CaseResult {
    let down = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_down = down.clone();
    let sink = Arc::new(ScriptedSink::new().script(move |_, _| {
        if is_down.load(std::sync::atomic::Ordering::Relaxed) {
            Act::Refuse(Outcome::SinkDown(
                sendoff::Reason::new("down").retry_after(Duration::from_millis(50)),
            ))
        } else {
            Act::Deliver
        }
    }));
    let running = start(scene.subject.relay.clone(), &sink, OnFailure::Block);
    for n in 0..60 {
        down.store((n / 10) % 2 == 1, std::sync::atomic::Ordering::Relaxed);
        scene.emit((0..5).map(|key| numbered(&format!("k{key}"), n))).await?;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    down.store(false, std::sync::atomic::Ordering::Relaxed);
    arrive(&sink, 300).await;
    running.stop().await?;
    for key in 0..5 {
        assert_eq!(numbers(&sink, &format!("k{key}")), (0..60).collect::<Vec<_>>());
    }
    assert!(sink.overlaps().is_empty());
    Ok(())
}
