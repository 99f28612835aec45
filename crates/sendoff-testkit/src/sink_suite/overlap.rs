//! Batches at the same time, and batches that nobody waits for any more.

use std::sync::Arc;
use std::time::Duration;

use sendoff::{Outcome, Outgoing};
use tokio::time::{sleep, timeout};

use super::message::batch;
use super::registry::cases;
use super::scene::{PATIENCE, Scene, publish};
use crate::Fault;

cases![
    batches_at_the_same_time_keep_their_outcomes_apart,
    a_dropped_publish_does_not_disturb_the_next,
    confirms_of_a_dropped_publish_are_not_taken_for_the_next_ones,
];

async fn batches_at_the_same_time_keep_their_outcomes_apart(mut scene: Scene) {
    let sink = scene.sink();
    let mut delivered: Vec<Arc<Outgoing>> = Vec::new();
    for _ in 0..5 {
        let good = batch(50);
        // All refused, if there is something to refuse.
        let bad: Vec<_> = (0..50)
            .map(|_| scene.poison())
            .collect::<Option<_>>()
            .unwrap_or_default();
        let (of_good, of_bad) = tokio::join!(publish(&sink, &good), publish(&sink, &bad));
        assert_eq!(of_good, vec![Outcome::Delivered; good.len()]);
        assert!(
            of_bad.iter().all(|outcome| matches!(outcome, Outcome::Permanent(_))),
            "{of_bad:?}"
        );
        delivered.extend(good);
    }
    scene.copies_of(&delivered).await;
    let counts = scene.counts().await;
    assert!(counts.len() == delivered.len() && counts.values().all(|copies| *copies == 1));
}

async fn a_dropped_publish_does_not_disturb_the_next(mut scene: Scene) {
    let sink = scene.connected_sink().await;
    for micros in [0, 50, 200, 500, 1000, 3000, 10_000] {
        // Dropped at one point or another on its way.
        let dropped = batch(100);
        let _ = timeout(Duration::from_micros(micros), sink.publish(&dropped)).await;
        let next = batch(20);
        assert_eq!(publish(&sink, &next).await, vec![Outcome::Delivered; 20]);
        scene.copies_of(&next).await;
    }
}

async fn confirms_of_a_dropped_publish_are_not_taken_for_the_next_ones(mut scene: Scene) {
    let (sink, dropped) = (scene.connected_sink().await, batch(4));
    scene.proxy.set(Fault::HoldAnswers);
    let publishing = tokio::spawn({
        let (sink, dropped) = (sink.clone(), dropped.clone());
        async move { sink.publish(&dropped).await }
    });
    scene.copies_of(&dropped).await;
    publishing.abort();
    assert!(publishing.await.is_err(), "it was delivered before its confirm");

    // The next ones are refused where the sink can tell: a stale confirm would make them delivered.
    let next: Vec<_> = (0..4)
        .map(|_| scene.poison())
        .collect::<Option<_>>()
        .unwrap_or_else(|| batch(4));
    let refused = scene.poison().is_some();
    let publishing = tokio::spawn({
        let (sink, next) = (sink.clone(), next.clone());
        async move { sink.publish(&next).await }
    });
    if !refused {
        sleep(Duration::from_millis(200)).await;
        assert!(!publishing.is_finished(), "delivered before its confirm");
    }
    scene.proxy.set(Fault::Pass);
    let outcomes = timeout(PATIENCE, publishing).await.expect("publish ends").unwrap();
    for outcome in &outcomes {
        let right = match outcome {
            Outcome::Permanent(_) => refused,
            Outcome::Delivered => !refused,
            // A sink may drop the connection together with the batch that was dropped.
            Outcome::Temporary(_) | Outcome::Unknown(_) | Outcome::SinkDown(_) => true,
            Outcome::NotYet(_) => false,
        };
        assert!(right, "{outcomes:?}");
    }
    scene.deliver(&sink, &batch(3)).await;
}
