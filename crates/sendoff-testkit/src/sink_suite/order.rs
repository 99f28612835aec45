//! Messages of one key stay in their order, for sinks that promise it.

use std::sync::Arc;

use sendoff::{Delivery, Outcome};

use super::message::{batch, keyed};
use super::registry::cases;
use super::scene::{Scene, publish};

cases![
    a_key_arrives_in_the_order_of_the_batch needs KeyOrder,
    nothing_of_a_key_passes_one_that_was_refused needs KeyOrder,
    nothing_of_a_key_passes_a_cut needs KeyOrder,
];

const KEYS: usize = 3;

fn interleaved(count: usize) -> Vec<Arc<Delivery>> {
    (0..count).map(|n| keyed(&format!("k{}", n % KEYS), n)).collect()
}

/// Which messages of the batch have arrived, by their place in it, in the order of arrival.
async fn arrived(scene: &mut Scene, batch: &[Arc<Delivery>]) -> Vec<usize> {
    let copies = scene.copies().await;
    let place = |id| batch.iter().position(|delivery| delivery.id == id);
    copies.iter().filter_map(|copy| place(copy.id)).collect()
}

async fn a_key_arrives_in_the_order_of_the_batch(mut scene: Scene) {
    let sink = scene.sink();
    assert!(sink.keeps_key_order());
    let sent = interleaved(300);
    assert_eq!(publish(&sink, &sent).await, vec![Outcome::Delivered; 300]);
    scene.copies_of(&sent).await;
    let arrived = arrived(&mut scene, &sent).await;
    for key in 0..KEYS {
        let of_key: Vec<usize> = arrived.iter().copied().filter(|n| n % KEYS == key).collect();
        assert!(of_key.is_sorted(), "key {key}: {of_key:?}");
    }
}

async fn nothing_of_a_key_passes_one_that_was_refused(mut scene: Scene) {
    let sink = scene.sink();
    let Some(poison) = scene.poison() else {
        // Without a message that it refuses there is nothing to pass: what is left is that it makes the promise.
        assert!(sink.keeps_key_order());
        return;
    };
    let mut poison = (*poison).clone();
    poison.key = Some("k".to_owned());
    let sent = [keyed("k", 0), poison.into(), keyed("k", 2), keyed("other", 3)];
    let outcomes = publish(&sink, &sent).await;
    assert_eq!(outcomes[0], Outcome::Delivered);
    assert!(matches!(outcomes[1], Outcome::Permanent(_)), "{outcomes:?}");
    assert!(
        matches!(outcomes[2], Outcome::Temporary(_) | Outcome::SinkDown(_)),
        "it has passed: {outcomes:?}"
    );
    assert_eq!(outcomes[3], Outcome::Delivered, "another key");
    scene.copies_of(&[sent[0].clone(), sent[3].clone()]).await;
    assert!(!arrived(&mut scene, &sent).await.contains(&2), "it has passed");
}

async fn nothing_of_a_key_passes_a_cut(mut scene: Scene) {
    let sink = scene.connected_sink().await;
    let before = scene.proxy.requested();
    assert_eq!(publish(&sink, &batch(60)).await, vec![Outcome::Delivered; 60]);
    let requested = scene.proxy.requested() - before;
    scene.proxy.cut_after_requests(requested / 2);
    let sent: Vec<_> = (0..60).map(|n| keyed("k", n)).collect();
    let outcomes = publish(&sink, &sent).await;
    let confirmed = outcomes
        .iter()
        .take_while(|outcome| **outcome == Outcome::Delivered)
        .count();
    let behind = &outcomes[confirmed..];
    assert!(
        !behind.contains(&Outcome::Delivered),
        "it has passed the one that failed: {outcomes:?}"
    );
    let left: Vec<_> = sent[confirmed..].to_vec();
    scene.deliver(&sink, &left).await;
    scene.copies_of(&sent).await;
    let mut first = arrived(&mut scene, &sent).await;
    // Copies may come later; the first of each come in order.
    let mut seen = std::collections::HashSet::new();
    first.retain(|n| seen.insert(*n));
    assert_eq!(first, (0..60).collect::<Vec<_>>());
}
