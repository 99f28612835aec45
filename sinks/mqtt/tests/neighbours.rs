//! A message that makes the broker close the connection fails alone: the sink stays up, and other messages are
//! delivered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap fails the test"
)]

use std::collections::HashSet;
use std::sync::Arc;

use sendoff::{Outcome, Outgoing, Sink as _};
use sendoff_sink_mqtt::{MqttConfig, MqttSink, Version};
use sendoff_testkit::servers::{Mosquitto, Options};

mod scene;
use scene::{Subscriber, batch, message, patient};

async fn fails_alone(broker: &Mosquitto, version: Version, bad: Outgoing) {
    let mut subscriber = Subscriber::start(broker).await;
    let sink = MqttSink::new(MqttConfig {
        version,
        ..patient(broker)
    })
    .unwrap();
    let bad = Arc::new(bad);
    for at in [0, 17, 50] {
        let mut sent = batch("open/a", 50);
        sent.insert(at, Arc::clone(&bad));
        let mut outcomes = sink.publish(&sent).await;
        let own = outcomes.remove(at);
        assert_eq!(outcomes, vec![Outcome::Delivered; 50], "with {own:?} at {at}");
        assert!(matches!(own, Outcome::Unknown(_)), "{own:?}");
        let mut left: HashSet<Vec<u8>> = (0..50).map(|number: usize| number.to_string().into_bytes()).collect();
        if version == Version::V5 {
            while !left.is_empty() {
                left.remove(&subscriber.next(1).await[0].payload.to_vec());
            }
        }
    }
    // Alone it is charged as well: the broker is not down.
    let alone = sink.publish(&[bad]).await;
    assert!(matches!(alone[..], [Outcome::Unknown(_)]), "{alone:?}");
}

#[tokio::test]
async fn a_packet_that_a_broker_ends_the_connection_for_fails_alone() {
    // A 3.1.1 broker cannot report the largest packet, and the settings need not have it.
    let broker = Mosquitto::start_with(Options::lines(["max_packet_size 4096"])).await;
    fails_alone(&broker, Version::V311, message("open/a", vec![b'x'; 5000])).await;
}
