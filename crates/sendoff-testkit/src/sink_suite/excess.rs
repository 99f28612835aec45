//! Messages that are more than a protocol or a broker has room for: they concern nobody but themselves.

use std::sync::Arc;

use sendoff::{Outcome, Outgoing};

use super::message::{batch, numbered};
use super::registry::cases;
use super::scene::{Scene, publish};

cases![
    a_message_with_thirty_thousand_headers_harms_no_other,
    a_message_with_a_header_of_a_megabyte_harms_no_other,
];

async fn a_message_with_thirty_thousand_headers_harms_no_other(scene: Scene) {
    harms_no_other(scene, |message| {
        for n in 0..30_000 {
            message.headers.insert(format!("h{n}"), "v");
        }
    })
    .await;
}

async fn a_message_with_a_header_of_a_megabyte_harms_no_other(scene: Scene) {
    harms_no_other(scene, |message| {
        message.headers.insert("x-large", "v".repeat(1 << 20));
    })
    .await;
}

/// Publishes it in the middle of others. Whatever becomes of it, they are delivered, and the sink is neither down nor broken.
async fn harms_no_other(mut scene: Scene, change: impl Fn(&mut Outgoing)) {
    let sink = scene.connected_sink().await;
    let mut message = (*numbered(666)).clone();
    change(&mut message);
    let message = Arc::new(message);
    let mut sent = batch(20);
    sent.insert(7, Arc::clone(&message));
    let mut outcomes = publish(&sink, &sent).await;
    sent.remove(7);
    let own = outcomes.remove(7);
    assert_eq!(
        outcomes,
        vec![Outcome::Delivered; 20],
        "the rest of the batch, beside {own:?}"
    );
    assert!(
        !matches!(own, Outcome::SinkDown(_) | Outcome::NotYet(_)),
        "it says nothing about the sink: {own:?}"
    );
    scene.copies_of(&sent).await;

    // Alone, too.
    let alone = publish(&sink, std::slice::from_ref(&message)).await;
    assert!(
        !matches!(alone[0], Outcome::SinkDown(_) | Outcome::NotYet(_)),
        "{alone:?}"
    );
    let next = batch(3);
    assert_eq!(publish(&sink, &next).await, vec![Outcome::Delivered; 3]);
    scene.copies_of(&next).await;
}
