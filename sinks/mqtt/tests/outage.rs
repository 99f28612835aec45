//! Brokers that crash, hang, restart, or have a wrong certificate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap fails the test"
)]

use std::sync::Arc;
use std::time::Duration;

use sendoff::{ErrorKind, Outcome, Sink as _};
use sendoff_sink_mqtt::{MqttConfig, MqttSink, Qos};
use sendoff_testkit::servers::{Authority, Mosquitto, Options};
use sendoff_wire::TlsConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

mod scene;
use scene::{Subscriber, batch, config, delivers, sink, text};

async fn is_down(sink: &MqttSink) {
    let begin = Instant::now();
    let outcomes = sink.publish(&batch("orders/placed", 3)).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Outcome::SinkDown(_))),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn a_dead_broker_is_down_and_a_new_one_is_found() {
    let mut broker = Mosquitto::start().await;
    let sink = sink(&broker);
    sink.check().await.unwrap();
    delivers(&sink, &batch("orders/placed", 3)).await;
    broker.kill();
    // The first batch after the crash may still use the old connection.
    let outcomes = sink.publish(&batch("orders/placed", 3)).await;
    assert!(
        outcomes.iter().all(|outcome| *outcome != Outcome::Delivered),
        "{outcomes:?}"
    );
    is_down(&sink).await;
    assert_eq!(sink.check().await.unwrap_err().kind(), ErrorKind::Unreachable);
    broker.restart().await;
    delivers(&sink, &batch("orders/placed", 3)).await;
}

#[tokio::test]
async fn a_broker_that_dies_under_a_batch_leaves_unknown_what_was_sent_and_down_what_was_not() {
    for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let mut broker = Mosquitto::start().await;
        let patient = MqttConfig {
            ack_timeout: Duration::from_secs(30),
            max_in_flight: Some(10),
            qos,
            ..config(&broker)
        };
        let sink = Arc::new(MqttSink::new(patient).unwrap());
        delivers(&sink, &batch("orders/placed", 1)).await;
        broker.pause();
        let publishing = {
            let sink = Arc::clone(&sink);
            tokio::spawn(async move { sink.publish(&batch("orders/placed", 50)).await })
        };
        let mut publishing = std::pin::pin!(publishing);
        // After a while without an answer, the batch is sent.
        assert!(timeout(Duration::from_millis(300), &mut publishing).await.is_err());
        broker.kill();
        let outcomes = timeout(Duration::from_secs(5), publishing).await.unwrap().unwrap();
        for (index, outcome) in outcomes.iter().enumerate() {
            let is_right = if index < 10 {
                matches!(outcome, Outcome::Unknown(_))
            } else {
                matches!(outcome, Outcome::SinkDown(_))
            };
            assert!(is_right, "{index}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_broker_that_hangs_is_unknown_then_down_then_delivers() {
    let broker = Mosquitto::start().await;
    let sink = sink(&broker);
    delivers(&sink, &batch("orders/placed", 1)).await;
    let messages = batch("orders/placed", 10);
    broker.pause();
    let outcomes = sink.publish(&messages).await;
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Outcome::Unknown(_))),
        "{outcomes:?}"
    );
    is_down(&sink).await;
    broker.resume();
    delivers(&sink, &messages).await;
}

#[tokio::test]
async fn a_batch_that_was_dropped_does_not_disturb_the_next() {
    let broker = Mosquitto::start().await;
    let sink = sink(&broker);
    for round in 0..30 {
        let dropped = batch("orders/dropped", 200);
        let _ = timeout(Duration::from_micros(100 * round), sink.publish(&dropped)).await;
        delivers(&sink, &batch("orders/placed", 20)).await;
    }
}

#[tokio::test]
async fn batches_at_the_same_time_share_one_connection() {
    let broker = Mosquitto::start().await;
    let mut subscriber = Subscriber::start(&broker).await;
    let sink = sink(&broker);
    let batches: Vec<_> = (0..8).map(|number| batch(&format!("orders/{number}"), 50)).collect();
    futures::future::join_all(batches.iter().map(|batch| delivers(&sink, batch))).await;
    assert_eq!(subscriber.next(400).await.len(), 400);
}

#[tokio::test]
async fn nothing_runs_in_the_background() {
    let broker = Mosquitto::start().await;
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let sink = sink(&broker);
    delivers(&sink, &batch("orders/placed", 5)).await;
    assert_eq!(alive(), before);
    sink.close().await;
    delivers(&sink, &batch("orders/placed", 5)).await;
}

#[tokio::test]
async fn only_a_broker_with_the_right_name_is_trusted() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, authority.pem()).unwrap();
    for (hosts, is_right) in [(["localhost"], true), (["elsewhere.example"], false)] {
        let broker = Mosquitto::start_with(Options::tls(authority.certificate(&hosts))).await;
        let trusting = MqttConfig {
            tls: Some(TlsConfig {
                ca_file: Some(ca_file.clone()),
                ..TlsConfig::default()
            }),
            ..MqttConfig::new(&broker.tls_url()).unwrap()
        };
        let sink = MqttSink::new(trusting).unwrap();
        if is_right {
            sink.check().await.unwrap();
            delivers(&sink, &batch("orders/placed", 300)).await;
        } else {
            let error = sink.check().await.unwrap_err();
            assert!(
                error.kind() == ErrorKind::Denied && error.to_string().contains("host name"),
                "{error}"
            );
            is_down(&sink).await;
        }
        // No CA of the system signed it.
        let stranger = MqttSink::new(MqttConfig::new(&broker.tls_url()).unwrap()).unwrap();
        assert_eq!(stranger.check().await.unwrap_err().kind(), ErrorKind::Denied);
    }
}

#[tokio::test]
async fn a_broker_may_ask_who_we_are() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let broker = Mosquitto::start_with(Options::mutual_tls(authority.certificate(&["localhost"]))).await;
    for (tls, welcome) in authority.clients(folder.path()) {
        let config = MqttConfig {
            tls: Some(tls),
            ..MqttConfig::new(&broker.tls_url()).unwrap()
        };
        let checked = MqttSink::new(config).unwrap().check().await;
        assert_eq!(checked.is_ok(), welcome, "{checked:?}");
    }
}

/// A broker that answers each read from a client with the next of these.
async fn scripted(answers: &'static [&'static [u8]]) -> MqttSink {
    scripted_for(Qos::AtLeastOnce, answers).await
}

async fn scripted_for(qos: Qos, answers: &'static [&'static [u8]]) -> MqttSink {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("mqtt://127.0.0.1:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            for answer in answers {
                let mut bytes = [0; 4096];
                let _ = socket.read(&mut bytes).await;
                let _ = socket.write_all(answer).await;
            }
        }
    });
    let config = MqttConfig {
        connect_timeout: Duration::from_millis(500),
        qos,
        ..MqttConfig::new(&url).unwrap()
    };
    MqttSink::new(config).unwrap()
}

#[tokio::test]
async fn codes_of_a_broker_decide_message_by_message() {
    let sink = scripted(&[
        b"\x20\x03\x00\x00\x00",
        // Out of order, as brokers may: 3 quota exceeded, 1 no matching subscribers, 2 payload format invalid with a
        // reason.
        b"\x40\x03\x00\x03\x97\x40\x03\x00\x01\x10\x40\x09\x00\x02\x99\x05\x1f\x00\x02no",
    ])
    .await;
    let outcomes = sink.publish(&batch("a", 3)).await;
    assert_eq!(outcomes[0], Outcome::Delivered);
    assert!(
        matches!(&outcomes[1], Outcome::Permanent(reason) if reason.text().contains("\"no\"")),
        "{outcomes:?}"
    );
    assert!(
        matches!(&outcomes[2], Outcome::Temporary(reason) if reason.text().contains("quota")),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn a_message_for_nobody_has_a_second_half_too() {
    const ANSWERS: &[&[u8]] = &[
        b"\x20\x03\x00\x00\x00",
        b"\x50\x03\x00\x01\x10",
        // Valid only after PUBREL: in answer to the next message it would be an unexpected packet.
        b"\x70\x02\x00\x01",
        b"\x50\x03\x00\x02\x10",
        b"\x70\x02\x00\x02",
    ];
    let sink = scripted_for(Qos::ExactlyOnce, ANSWERS).await;
    delivers(&sink, &batch("a", 1)).await;
    delivers(&sink, &batch("a", 1)).await;
}

#[tokio::test]
async fn a_broker_that_says_good_bye_is_quoted() {
    let sink = scripted(&[b"\x20\x03\x00\x00\x00", b"\x40\x02\x00\x01\xe0\x02\x8b\x00"]).await;
    let outcomes = sink.publish(&batch("a", 2)).await;
    assert_eq!(outcomes[0], Outcome::Delivered);
    assert!(
        matches!(&outcomes[1], Outcome::Unknown(reason) if reason.text().contains("the broker is shutting down")),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn what_speaks_another_protocol_is_named() {
    let sink = scripted(&[b"HTTP/1.1 400 Bad Request\r\n\r\n"]).await;
    let outcomes = sink.publish(&batch("a", 1)).await;
    assert!(
        matches!(&outcomes[0], Outcome::SinkDown(_)) && text(&outcomes[0]).contains("not MQTT"),
        "{outcomes:?}"
    );
}
