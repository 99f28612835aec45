//! The connection breaks in the middle of a batch.

use sendoff::Outcome;

use super::message::batch;
use super::registry::cases;
use super::scene::{Scene, publish};

cases![
    a_cut_among_the_requests_loses_nothing,
    a_cut_among_the_confirms_loses_nothing,
    a_cut_before_the_first_request_loses_nothing,
];

const MANY: usize = 60;

async fn a_cut_among_the_requests_loses_nothing(scene: Scene) {
    survives(scene, |scene, requested, _| {
        scene.proxy.cut_after_requests(requested / 2);
    })
    .await;
}

async fn a_cut_among_the_confirms_loses_nothing(scene: Scene) {
    survives(scene, |scene, _, answered| scene.proxy.cut_after_answers(answered / 2)).await;
}

async fn a_cut_before_the_first_request_loses_nothing(scene: Scene) {
    survives(scene, |scene, _, _| scene.proxy.cut()).await;
}

/// Publishes a batch with a cut in it, then retries what was not delivered, and only that.
async fn survives(mut scene: Scene, cut: impl Fn(&Scene, u64, u64)) {
    let sink = scene.connected_sink().await;
    let before = (scene.proxy.requested(), scene.proxy.answered());
    let whole = batch(MANY);
    assert_eq!(publish(&sink, &whole).await, vec![Outcome::Delivered; MANY]);
    let requested = scene.proxy.requested() - before.0;
    let answered = scene.proxy.answered() - before.1;

    cut(&scene, requested, answered);
    let sent = batch(MANY);
    let outcomes = publish(&sink, &sent).await;
    let failed: Vec<_> = sent
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| **outcome != Outcome::Delivered)
        .map(|(outgoing, _)| outgoing.clone())
        .collect();
    let rounds = scene.deliver(&sink, &failed).await;
    scene.copies_of(&sent).await;

    let counts = scene.counts().await;
    for (outgoing, outcome) in sent.iter().zip(&outcomes) {
        let copies = counts[&outgoing.id];
        match outcome {
            // Those that the cut left without a confirm the sink itself may send again, in two parts, and no more.
            Outcome::Delivered => assert!(copies <= 2, "a delivered message was sent {copies} times"),
            Outcome::Unknown(_) => assert!(copies <= 1 + rounds, "{copies} copies after {rounds} rounds"),
            // It says that this one did not arrive.
            Outcome::SinkDown(_) | Outcome::Temporary(_) => assert!(copies <= rounds, "{outcome:?} had arrived"),
            Outcome::Permanent(_) | Outcome::NotYet(_) => panic!("a cut is no reason to give up: {outcome:?}"),
        }
    }
}
