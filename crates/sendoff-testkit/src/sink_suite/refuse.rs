//! Messages that can never be delivered.

use sendoff::Outcome;

use super::message::{batch, large};
use super::registry::cases;
use super::scene::{Scene, publish};

cases![
    a_message_that_is_too_large_is_refused_with_the_limit needs MaxSize,
    the_largest_message_is_delivered needs MaxSize,
    a_message_for_nobody_is_refused_with_advice needs Unroutable,
];

async fn a_message_that_is_too_large_is_refused_with_the_limit(mut scene: Scene) {
    let limit = scene.capabilities.max_size.expect("a limit");
    let sink = scene.sink();
    let mut sent = batch(5);
    sent[2] = large(limit + 1);
    let outcomes = publish(&sink, &sent).await;
    for (at, outcome) in outcomes.iter().enumerate() {
        match (at, outcome) {
            (2, Outcome::Permanent(reason)) => {
                let text = reason.text();
                assert!(
                    text.contains(&limit.to_string()),
                    "it does not name the limit of {limit}: {text}"
                );
            }
            (2, other) => panic!("{} bytes of {limit}: {other:?}", limit + 1),
            (_, outcome) => assert_eq!(*outcome, Outcome::Delivered, "the rest of the batch"),
        }
    }
    sent.remove(2);
    scene.copies_of(&sent).await;
    assert_eq!(scene.counts().await.len(), 4);
}

async fn the_largest_message_is_delivered(mut scene: Scene) {
    let limit = scene.capabilities.max_size.expect("a limit");
    let sink = scene.sink();
    // Room for what the format puts around it, and for the base64 that it may come as.
    let sent = [large(limit / 2)];
    assert_eq!(publish(&sink, &sent).await, [Outcome::Delivered]);
    assert_eq!(scene.copies_of(&sent).await[0].payload.len(), limit / 2);
}

async fn a_message_for_nobody_is_refused_with_advice(mut scene: Scene) {
    let sink = scene.sink();
    let mut sent = batch(5);
    let mut unroutable = (*sent[2]).clone();
    scene.broker.make_unroutable(&mut unroutable);
    sent[2] = unroutable.into();
    let outcomes = publish(&sink, &sent).await;
    for (at, outcome) in outcomes.iter().enumerate() {
        match (at, outcome) {
            (2, Outcome::Permanent(reason)) => {
                assert!(
                    reason.text().contains('('),
                    "no advice how to mend it: {}",
                    reason.text()
                );
            }
            (2, other) => panic!("nobody can receive it: {other:?}"),
            (_, outcome) => assert_eq!(*outcome, Outcome::Delivered, "the rest of the batch"),
        }
    }
    sent.remove(2);
    scene.copies_of(&sent).await;
    assert_eq!(scene.counts().await.len(), 4);
}
