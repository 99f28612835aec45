//! A Kafka-compatible broker that keeps its records in a file (tansu), read by a consumer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap fails the test"
)]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::message::{Message as _, OwnedMessage};
use sendoff::{ErrorKind, Outcome, Sink as _};
use sendoff_sink_kafka::{Compression, KafkaConfig, KafkaSink};
use sendoff_testkit::servers::Kafka;
use tokio::time::timeout;

mod scene;
use scene::{batch, create, delivers, message, read, stored, stores_all_that_messages_have};

async fn broker() -> Kafka {
    let broker = Kafka::start().await;
    create(&broker.address(), "orders").await;
    broker
}

fn config(broker: &Kafka) -> KafkaConfig {
    KafkaConfig {
        // Longer than a restart on a busy machine: tansu 0.6 exits when a client that gave up a message asks for the
        // next epoch.
        ack_timeout: Duration::from_secs(50),
        connect_timeout: Duration::from_secs(10),
        ..KafkaConfig::new([broker.address()])
    }
}

fn sink(broker: &Kafka) -> KafkaSink {
    KafkaSink::new(config(broker)).unwrap()
}

#[tokio::test]
async fn records_have_all_that_messages_have_and_keys_pick_partitions_as_in_java() {
    let broker = broker().await;
    stores_all_that_messages_have(&sink(&broker), &broker.address()).await;
}

#[tokio::test]
async fn records_that_were_made_smaller_are_read_as_they_were() {
    let broker = broker().await;
    for (number, compression) in [Compression::Lz4, Compression::Gzip].into_iter().enumerate() {
        let smaller = KafkaConfig {
            compression,
            ..config(&broker)
        };
        let body = "made smaller ".repeat(100);
        let messages = [Arc::new(message("orders", Some("k"), body.as_bytes()))];
        delivers(&KafkaSink::new(smaller).unwrap(), &messages).await;
        let records = stored(&broker.address(), number + 1).await;
        assert!(
            records.iter().all(|record| record.payload() == Some(body.as_bytes())),
            "{compression:?}"
        );
    }
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_named_by_the_check() {
    let broker = broker().await;
    for (topic, is_there) in [("orders", true), ("missing", false)] {
        let fixed = KafkaConfig {
            topic: topic.parse().unwrap(),
            ..config(&broker)
        };
        let checked = KafkaSink::new(fixed).unwrap().check().await;
        assert_eq!(
            checked.map_err(|error| error.kind()).err(),
            (!is_there).then_some(ErrorKind::NotFound)
        );
    }
}

#[tokio::test]
async fn a_broker_that_is_killed_under_batches_loses_nothing() {
    let mut broker = broker().await;
    let sink = Arc::new(sink(&broker));
    let messages = batch(300);
    delivers(&sink, &messages[..1]).await;
    for part in messages.chunks(100) {
        broker.pause();
        let mut publishing = tokio::spawn({
            let (sink, mut left) = (Arc::clone(&sink), part.to_vec());
            async move {
                while !left.is_empty() {
                    let outcomes = sink.publish(&left).await;
                    let mut outcomes = outcomes.iter();
                    left.retain(|_| outcomes.next() != Some(&Outcome::Delivered));
                }
            }
        });
        // The batch is sent and not confirmed.
        assert!(
            timeout(Duration::from_millis(300), &mut publishing).await.is_err(),
            "delivered without a confirmation"
        );
        broker.kill();
        broker.restart().await;
        timeout(Duration::from_secs(120), publishing)
            .await
            .expect("the sink must reconnect")
            .unwrap();
    }
    // Delivered messages are stored, even after another crash.
    broker.kill();
    broker.restart().await;
    let wanted: HashSet<Vec<u8>> = messages.iter().map(|message| message.payload.to_vec()).collect();
    let has_all = move |records: &[OwnedMessage]| {
        let found: HashSet<&[u8]> = records.iter().filter_map(|record| record.payload()).collect();
        wanted.iter().all(|payload| found.contains(&payload[..]))
    };
    let records = read(&broker.address(), Duration::from_millis(1), has_all.clone()).await;
    assert!(has_all(&records), "{} records", records.len());
}
