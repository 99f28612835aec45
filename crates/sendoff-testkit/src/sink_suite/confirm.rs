//! Delivered means confirmed.

use std::time::Duration;

use sendoff::Outcome;
use tokio::time::{sleep, timeout};

use super::message::batch;
use super::registry::cases;
use super::scene::{PATIENCE, Scene, publish};
use crate::Fault;

cases![
    nothing_is_delivered_before_its_confirm,
    what_arrived_without_a_confirm_is_unknown,
    check_reaches_the_broker_and_sends_nothing,
    check_tells_that_the_way_is_closed,
];

/// Few enough for every sink to have all of them in flight.
const FEW: usize = 4;

async fn nothing_is_delivered_before_its_confirm(mut scene: Scene) {
    let (sink, sent) = (scene.connected_sink().await, batch(FEW));
    scene.proxy.set(Fault::HoldAnswers);
    let answered = scene.proxy.answered();
    let publishing = tokio::spawn({
        let (sink, sent) = (sink.clone(), sent.clone());
        async move { sink.publish(&sent).await }
    });
    // All is there, and the broker has said so; only the sink cannot know.
    scene.copies_of(&sent).await;
    scene.proxy.wait_until_answered(answered).await;
    sleep(Duration::from_millis(300)).await;
    assert!(
        !publishing.is_finished(),
        "publish ended before any confirm: {:?}",
        publishing.await
    );
    scene.proxy.set(Fault::Pass);
    let outcomes = timeout(PATIENCE, publishing).await.expect("publish ends").unwrap();
    assert_eq!(outcomes, vec![Outcome::Delivered; FEW]);
    assert!(scene.counts().await.values().all(|copies| *copies == 1));
}

async fn what_arrived_without_a_confirm_is_unknown(mut scene: Scene) {
    let (sink, sent) = (scene.connected_sink().await, batch(FEW));
    scene.proxy.set(Fault::LoseAnswers);
    let publishing = tokio::spawn({
        let (sink, sent) = (sink.clone(), sent.clone());
        async move { sink.publish(&sent).await }
    });
    scene.copies_of(&sent).await;
    scene.proxy.set(Fault::Refuse);
    let outcomes = timeout(PATIENCE, publishing).await.expect("publish ends").unwrap();
    for outcome in &outcomes {
        assert!(
            matches!(outcome, Outcome::Unknown(_)),
            "sent, and not confirmed: {outcome:?}"
        );
    }
    scene.proxy.set(Fault::Pass);
    scene.deliver(&sink, &sent).await;
    let counts = scene.counts().await;
    assert_eq!(
        counts.len(),
        FEW + 1,
        "the batch, and what the connection was tried with"
    );
}

async fn check_reaches_the_broker_and_sends_nothing(mut scene: Scene) {
    let sink = scene.sink();
    sink.check().await.expect("the broker is there");
    assert!(scene.proxy.connections() > 0, "check did not connect");
    assert_eq!(scene.copies().await, []);
    assert_eq!(publish(&sink, &batch(1)).await, [Outcome::Delivered]);
}

async fn check_tells_that_the_way_is_closed(scene: Scene) {
    let sink = scene.sink();
    scene.proxy.set(Fault::Refuse);
    let checked = timeout(Duration::from_secs(10), sink.check())
        .await
        .expect("check ends");
    let error = checked.expect_err("there is no way to the broker");
    assert!(error.next().is_some(), "an error without advice: {error}");
    scene.proxy.set(Fault::Pass);
    scene.deliver(&sink, &batch(1)).await;
}
