//! librdkafka's mock cluster in this process: three brokers that store records, fail on demand, and go down and up.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap fails the test"
)]

use std::sync::Arc;
use std::time::Duration;

use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use sendoff::{ErrorKind, Outcome, Sink as _};
use sendoff_sink_kafka::{KafkaConfig, KafkaSink};
use tokio::time::{Instant, timeout};

mod scene;
use scene::{PARTITIONS, batch, delivers, message, stored, stores_all_that_messages_have, text};

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster() -> Cluster {
    let cluster = MockCluster::new(3).unwrap();
    cluster.create_topic("orders", PARTITIONS, 3).unwrap();
    cluster
}

fn config(cluster: &Cluster) -> KafkaConfig {
    let servers = cluster.bootstrap_servers();
    KafkaConfig {
        connect_timeout: Duration::from_secs(2),
        ack_timeout: Duration::from_secs(3),
        ..KafkaConfig::new(servers.split(','))
    }
}

fn sink(cluster: &Cluster) -> KafkaSink {
    KafkaSink::new(config(cluster)).unwrap()
}

async fn is_down(sink: &KafkaSink) {
    let begin = Instant::now();
    let outcomes = sink.publish(&batch(3)).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Outcome::SinkDown(_))),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn records_have_all_that_messages_have_and_keys_pick_partitions_as_in_java() {
    let cluster = cluster();
    stores_all_that_messages_have(&sink(&cluster), &cluster.bootstrap_servers()).await;
}

#[tokio::test]
async fn a_cluster_that_goes_down_is_down_and_found_again() {
    let cluster = cluster();
    let sink = sink(&cluster);
    delivers(&sink, &batch(10)).await;
    for broker in 1..=3 {
        cluster.broker_down(broker).unwrap();
    }
    // The first batch may be sent before the outage is noticed.
    let outcomes = sink.publish(&batch(5)).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Outcome::Unknown(_) | Outcome::SinkDown(_))),
        "{outcomes:?}"
    );
    is_down(&sink).await;
    is_down(&sink).await;
    assert_eq!(sink.check().await.unwrap_err().kind(), ErrorKind::Unreachable);
    for broker in 1..=3 {
        cluster.broker_up(broker).unwrap();
    }
    let back = async { while sink.publish(&batch(1)).await != [Outcome::Delivered] {} };
    timeout(Duration::from_secs(20), back)
        .await
        .expect("the sink must reconnect");
    delivers(&sink, &batch(10)).await;
}

#[tokio::test]
async fn a_cluster_that_was_never_there_is_down_soon() {
    let sink = KafkaSink::new(KafkaConfig {
        connect_timeout: Duration::from_secs(2),
        ..KafkaConfig::new(["127.0.0.1:1"])
    })
    .unwrap();
    is_down(&sink).await;
    assert_eq!(sink.check().await.unwrap_err().kind(), ErrorKind::Unreachable);
}

#[tokio::test]
async fn what_the_brokers_refuse_is_told_apart() {
    for (error, is_right, word) in [
        (
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
            (|outcome| matches!(outcome, Outcome::Temporary(_))) as fn(&Outcome) -> bool,
            "allow the sink's user to write",
        ),
        (
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
            |outcome| matches!(outcome, Outcome::Permanent(_)),
            "max.message.bytes",
        ),
        (
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
            |outcome| matches!(outcome, Outcome::SinkDown(_)),
            "check `user`",
        ),
    ] {
        let cluster = cluster();
        let sink = sink(&cluster);
        delivers(&sink, &batch(1)).await;
        // A second time for a record that is sent alone.
        let times = if error == RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE {
            2
        } else {
            1
        };
        cluster.request_errors(RDKafkaApiKey::Produce, &vec![error; times]);
        let one = [Arc::new(message("orders", Some("k"), "secret payload"))];
        let outcomes = sink.publish(&one).await;
        assert!(
            is_right(&outcomes[0]) && text(&outcomes[0]).contains(word),
            "{outcomes:?}"
        );
        assert!(!text(&outcomes[0]).contains("secret"), "{outcomes:?}");
    }
}

#[tokio::test]
async fn a_topic_of_all_messages_that_is_refused_takes_the_sink_down() {
    let cluster = cluster();
    let sink = KafkaSink::new(KafkaConfig {
        topic: "orders".parse().unwrap(),
        ..config(&cluster)
    })
    .unwrap();
    delivers(&sink, &batch(1)).await;
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    cluster.request_errors(RDKafkaApiKey::Produce, &[refused]);
    let outcomes = sink.publish(&batch(1)).await;
    assert!(
        matches!(&outcomes[..], [Outcome::SinkDown(reason)] if reason.text().contains("allow the sink")),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn records_that_are_refused_together_are_asked_for_one_by_one() {
    for error in [
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_INVALID_RECORD,
    ] {
        let cluster = cluster();
        let sink = sink(&cluster);
        delivers(&sink, &batch(1)).await;
        // As from a topic whose largest batch is smaller, or for a batch with one record that the topic refuses.
        cluster.request_errors(RDKafkaApiKey::Produce, &[error]);
        let together: Vec<_> = (0..20)
            .map(|_| Arc::new(message("orders", Some("k"), "together")))
            .collect();
        delivers(&sink, &together).await;
        stored(&cluster.bootstrap_servers(), 21).await;
        sink.close().await;
    }
}

#[tokio::test]
async fn what_the_client_can_mend_is_delivered_once() {
    let cluster = cluster();
    let sink = sink(&cluster);
    delivers(&sink, &batch(1)).await;
    let again = [
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    ];
    cluster.request_errors(RDKafkaApiKey::Produce, &again);
    delivers(&sink, &[Arc::new(message("orders", Some("k"), "mended"))]).await;
    stored(&cluster.bootstrap_servers(), 2).await;
}

#[tokio::test]
async fn a_topic_that_is_not_there_or_cannot_be_is_permanent_and_the_others_go_on() {
    let cluster = cluster();
    cluster
        .topic_error("missing", RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        .unwrap();
    let sink = sink(&cluster);
    let messages = ["orders", "missing", "not a topic", "orders"].map(|topic| Arc::new(message(topic, None, "{}")));
    let outcomes = sink.publish(&messages).await;
    assert_eq!((&outcomes[0], &outcomes[3]), (&Outcome::Delivered, &Outcome::Delivered));
    assert!(
        matches!(&outcomes[1], Outcome::Permanent(reason) if reason.text().contains("create the topic")),
        "{outcomes:?}"
    );
    assert!(
        matches!(&outcomes[2], Outcome::Permanent(reason) if reason.text().contains("letters")),
        "{outcomes:?}"
    );
    let fixed = KafkaConfig {
        topic: "missing".parse().unwrap(),
        ..config(&cluster)
    };
    assert_eq!(
        KafkaSink::new(fixed).unwrap().check().await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn a_message_that_is_too_large_is_permanent_and_names_both_sizes() {
    let cluster = cluster();
    let sink = KafkaSink::new(KafkaConfig {
        max_message_bytes: 5000,
        ..config(&cluster)
    })
    .unwrap();
    let messages =
        [vec![b'x'; 6000], vec![b'x'; 100], vec![b'x'; 4500]].map(|body| Arc::new(message("orders", None, body)));
    let outcomes = sink.publish(&messages).await;
    assert!(
        matches!(&outcomes[0], Outcome::Permanent(reason) if reason.text().contains("5000 are allowed")),
        "{outcomes:?}"
    );
    assert_eq!(outcomes[1..], [Outcome::Delivered, Outcome::Delivered]);
}

#[tokio::test]
async fn a_batch_that_was_dropped_does_not_disturb_the_next() {
    let cluster = cluster();
    let sink = sink(&cluster);
    delivers(&sink, &batch(1)).await;
    for _ in 0..10 {
        let _ = timeout(Duration::from_micros(500), sink.publish(&batch(100))).await;
        delivers(&sink, &batch(20)).await;
    }
}

#[tokio::test]
async fn closing_ends_the_clients_threads_and_a_new_batch_begins_again() {
    let cluster = cluster();
    let sink = sink(&cluster);
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    delivers(&sink, &batch(5)).await;
    assert!(threads() > before);
    sink.close().await;
    let ended = async {
        // Idle blocking threads of the runtime live for ten seconds.
        while threads() > before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(
        timeout(Duration::from_secs(60), ended).await.is_ok(),
        "{} of {before}",
        threads()
    );
    delivers(&sink, &batch(5)).await;
}
