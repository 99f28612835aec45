//! A message that makes the server close the connection fails alone: the sink stays up, and other messages are
//! delivered.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sendoff::{Outcome, Sink as _};
use sendoff_sink_nats::{Mode, NatsConfig, NatsSink};
use sendoff_testkit::servers::{Nats, Options};

mod scene;
use scene::{batch, config, message, orders, reader, stored, stream};

#[tokio::test]
async fn a_subject_that_a_server_ends_the_connection_for_fails_alone() {
    let nats = Nats::start_with(Options::lines(["max_control_line: 512"])).await;
    let reader = reader(&nats).await;
    stream(&reader, orders()).await;
    for mode in [Mode::JetStream, Mode::Core] {
        let sink = NatsSink::new(NatsConfig {
            mode,
            ack_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(30),
            ..config(&nats)
        })
        .unwrap();
        let long = Arc::new(message(&format!("orders.{}", "x".repeat(600)), "{}"));
        let mut expected = HashSet::new();
        for at in [0, 17, 50] {
            let mut sent = batch("orders.placed", 50);
            expected.extend(sent.iter().map(|message| message.id.to_string()));
            sent.insert(at, Arc::clone(&long));
            let mut outcomes = sink.publish(&sent).await;
            let own = outcomes.remove(at);
            assert_eq!(outcomes, vec![Outcome::Delivered; 50], "{mode:?}, with {own:?} at {at}");
            assert!(matches!(own, Outcome::Unknown(_)), "{own:?}");
        }
        let stored = stored(&reader).await;
        let id = |headers: &async_nats::HeaderMap| headers.get("sendoff-id").unwrap().as_str().to_owned();
        let ids: HashSet<String> = stored.iter().map(|message| id(&message.headers)).collect();
        assert!(
            expected.is_subset(&ids),
            "{mode:?}: {} of {}",
            ids.len(),
            expected.len()
        );
        let alone = sink.publish(&[long]).await;
        assert!(matches!(alone[..], [Outcome::Unknown(_)]), "{alone:?}");
        sink.close().await;
    }
}
