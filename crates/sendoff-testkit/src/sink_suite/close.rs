//! The end.

use std::time::Duration;

use sendoff::Outcome;
use tokio::time::{Instant, sleep, timeout};

use super::message::batch;
use super::registry::cases;
use super::scene::{Scene, publish};

cases![
    closing_leaves_no_connection_and_loses_nothing,
    closing_what_never_connected_is_nothing
];

async fn closing_leaves_no_connection_and_loses_nothing(mut scene: Scene) {
    let (sink, sent) = (scene.sink(), batch(50));
    assert_eq!(publish(&sink, &sent).await, vec![Outcome::Delivered; 50]);
    assert!(scene.proxy.open() > 0, "it does not use the proxy");
    timeout(Duration::from_secs(10), sink.close())
        .await
        .expect("close ends");
    let began = Instant::now();
    while scene.proxy.open() > 0 {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{} connections are open",
            scene.proxy.open()
        );
        sleep(Duration::from_millis(5)).await;
    }
    scene.copies_of(&sent).await;
    // Nothing in the background connects again.
    let connections = scene.proxy.connections();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(
        scene.proxy.connections(),
        connections,
        "somebody has connected after the end"
    );
}

async fn closing_what_never_connected_is_nothing(scene: Scene) {
    let sink = scene.sink();
    timeout(Duration::from_secs(10), sink.close())
        .await
        .expect("close ends");
    assert_eq!(scene.proxy.open(), 0);
}
