//! The broker is down, and comes back.

use std::time::Duration;

use sendoff::Outcome;
use tokio::time::Instant;

use super::message::batch;
use super::registry::cases;
use super::scene::{Scene, publish, reason};
use crate::Fault;

cases![
    a_dead_broker_is_reported_soon_and_found_again needs Restart,
    a_sink_may_be_built_before_its_broker_is_up needs Restart,
    a_broker_that_closes_every_connection_is_down,
    a_broker_that_never_greets_is_down needs Handshake,
];

/// How long a relay may be kept waiting for the news.
const SOON: Duration = Duration::from_secs(6);

/// Publishes, and wants to hear that the sink is down.
async fn is_down(sink: &std::sync::Arc<dyn sendoff::Sink>) {
    let began = Instant::now();
    let outcomes = publish(sink, &batch(3)).await;
    let took = began.elapsed();
    for outcome in &outcomes {
        assert!(
            matches!(outcome, Outcome::SinkDown(_)),
            "the broker is down: {outcome:?}"
        );
        assert!(reason(outcome).len() > 20, "a reason that helps nobody: {outcome:?}");
    }
    assert!(took < SOON, "it took {took:?} to say so");
}

async fn a_dead_broker_is_reported_soon_and_found_again(mut scene: Scene) {
    let sink = scene.direct_sink();
    let before = batch(10);
    assert_eq!(publish(&sink, &before).await, vec![Outcome::Delivered; 10]);
    scene.broker.kill().await;
    // The first may have been written to a connection whose end had not been noticed.
    let first = publish(&sink, &batch(1)).await;
    assert!(
        matches!(first[..], [Outcome::SinkDown(_) | Outcome::Unknown(_)]),
        "{first:?}"
    );
    is_down(&sink).await;
    is_down(&sink).await;
    assert!(sink.check().await.is_err());
    scene.broker.restart().await;
    let after = batch(10);
    scene.deliver(&sink, &after).await;
    scene.copies_of(&before).await;
    scene.copies_of(&after).await;
}

async fn a_sink_may_be_built_before_its_broker_is_up(mut scene: Scene) {
    scene.broker.kill().await;
    let sink = scene.direct_sink();
    is_down(&sink).await;
    scene.broker.restart().await;
    let after = batch(10);
    scene.deliver(&sink, &after).await;
    scene.copies_of(&after).await;
}

async fn a_broker_that_closes_every_connection_is_down(mut scene: Scene) {
    scene.proxy.set(Fault::Refuse);
    let sink = scene.sink();
    is_down(&sink).await;
    scene.proxy.set(Fault::Pass);
    let after = batch(10);
    scene.deliver(&sink, &after).await;
    scene.copies_of(&after).await;
}

async fn a_broker_that_never_greets_is_down(mut scene: Scene) {
    scene.proxy.set(Fault::HoldAnswers);
    let sink = scene.sink();
    is_down(&sink).await;
    scene.proxy.set(Fault::Pass);
    let after = batch(10);
    scene.deliver(&sink, &after).await;
    scene.copies_of(&after).await;
}
