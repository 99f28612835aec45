//! A real broker: received and refused messages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap fails the test"
)]

use std::sync::Arc;
use std::time::Duration;

use sendoff::{ErrorKind, Outcome, Sink as _};
use sendoff_sink_mqtt::{MqttConfig, MqttSink, Qos, Version};
use sendoff_testkit::servers::{Mosquitto, Options};

mod scene;
use scene::{Subscriber, batch, delivers, message, patient, text};

#[tokio::test]
async fn messages_arrive_in_order_with_all_they_have() {
    let broker = Mosquitto::start().await;
    let mut subscriber = Subscriber::start(&broker).await;
    for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let config = MqttConfig {
            qos,
            message_expiry: Some(Duration::from_secs(600)),
            ..patient(&broker)
        };
        let sink = MqttSink::new(config).unwrap();
        let mut full = message("orders/placed", b"\0\xff binary".to_vec());
        full.content_type = Some("application/octet-stream".into());
        full.headers.insert("traceparent", "00-ab");
        full.headers.insert("note", "one\r\ntwo\0 100%");
        let mut messages = batch("orders/many", 300);
        messages.push(Arc::new(full));
        messages.push(Arc::new(message("orders/empty", "")));
        delivers(&sink, &messages).await;
        let received = subscriber.next(messages.len()).await;
        for (received, sent) in received.iter().zip(&messages) {
            assert_eq!(
                (&received.payload, &received.topic[..]),
                (&sent.payload, sent.topic.as_bytes())
            );
            let properties = received.properties.as_ref().unwrap();
            let id = ("sendoff-id".to_owned(), sent.id.to_string());
            assert!(properties.user_properties.contains(&id), "{properties:?}");
        }
        let properties = received[300].properties.as_ref().unwrap();
        assert_eq!(properties.content_type.as_deref(), Some("application/octet-stream"));
        assert!(properties.message_expiry_interval.is_some_and(|left| left > 500));
        for (name, value) in [
            ("traceparent", "00-ab"),
            ("sendoff-key", "customer-7"),
            ("note", "one%0D%0Atwo%00%20100%25"),
            ("sendoff-encoded", "note"),
        ] {
            let pair = (name.to_owned(), value.to_owned());
            assert!(properties.user_properties.contains(&pair), "{name}: {properties:?}");
        }
    }
}

#[tokio::test]
async fn the_old_protocol_carries_envelopes() {
    let broker = Mosquitto::start().await;
    let mut subscriber = Subscriber::start(&broker).await;
    for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let sink = MqttSink::new(MqttConfig {
            version: Version::V311,
            qos,
            ..patient(&broker)
        })
        .unwrap();
        sink.check().await.unwrap();
        let messages = batch("orders/placed", 100);
        delivers(&sink, &messages).await;
        for (received, sent) in subscriber.next(100).await.iter().zip(&messages) {
            let start = format!("{{\"id\":\"{}\"", sent.id);
            assert!(received.payload.starts_with(start.as_bytes()), "{:?}", received.payload);
        }
    }
}

#[tokio::test]
async fn a_broker_that_allows_little_at_a_time_is_not_overrun() {
    let broker = Mosquitto::start_with(Options::lines(["max_inflight_messages 2"])).await;
    let mut subscriber = Subscriber::start(&broker).await;
    // A 3.1.1 broker cannot report its limit, so the settings have it.
    for (version, qos, max_in_flight) in [
        (Version::V5, Qos::AtLeastOnce, None),
        (Version::V5, Qos::ExactlyOnce, None),
        (Version::V311, Qos::ExactlyOnce, Some(2)),
    ] {
        let sink = MqttSink::new(MqttConfig {
            version,
            qos,
            max_in_flight,
            ..patient(&broker)
        })
        .unwrap();
        delivers(&sink, &batch("orders/placed", 60)).await;
        subscriber.next(60).await;
    }
}

#[tokio::test]
async fn a_message_larger_than_the_broker_takes_is_permanent_and_names_both_sizes() {
    let broker = Mosquitto::start_with(Options::lines(["max_packet_size 4096"])).await;
    let mut subscriber = Subscriber::start(&broker).await;
    let sink = MqttSink::new(patient(&broker)).unwrap();
    let messages = [
        message("a", vec![b'x'; 5000]),
        message("b", "{}"),
        message("c", vec![b'x'; 4090]),
    ]
    .map(Arc::new);
    let outcomes = sink.publish(&messages).await;
    for at in [0, 2] {
        assert!(matches!(outcomes[at], Outcome::Permanent(_)), "{outcomes:?}");
        assert!(text(&outcomes[at]).contains("the broker accepts 4096"), "{outcomes:?}");
    }
    assert_eq!(outcomes[1], Outcome::Delivered);
    assert_eq!(&subscriber.next(1).await[0].topic[..], b"b");
    // A 3.1.1 broker cannot report its limit, so the settings have it.
    let old = MqttConfig {
        version: Version::V311,
        max_packet_bytes: Some(4096),
        ..patient(&broker)
    };
    let outcomes = MqttSink::new(old).unwrap().publish(&messages).await;
    assert!(
        matches!(outcomes[0], Outcome::Permanent(_)) && outcomes[1] == Outcome::Delivered,
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn a_topic_that_no_broker_takes_is_permanent_and_the_others_go_on() {
    let broker = Mosquitto::start().await;
    let mut subscriber = Subscriber::start(&broker).await;
    let config = MqttConfig {
        topic: "{header:tenant|}/{topic}".parse().unwrap(),
        ..patient(&broker)
    };
    let sink = MqttSink::new(config).unwrap();
    let mut wild = message("a/#", "{}");
    wild.headers.insert("tenant", "x/+\n");
    let messages = [wild, message(&"/".repeat(300), "{}"), message("b", "{}")].map(Arc::new);
    let outcomes = sink.publish(&messages).await;
    assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Delivered, &Outcome::Delivered));
    assert!(
        matches!(&outcomes[1], Outcome::Permanent(reason) if reason.text().contains("200 levels")),
        "{outcomes:?}"
    );
    let topics: Vec<_> = subscriber
        .next(2)
        .await
        .into_iter()
        .map(|message| message.topic)
        .collect();
    assert_eq!(topics, ["x%2F%2B%0A/a/%23", "/b"]);
}

#[tokio::test]
async fn retained_messages_wait_for_who_comes_later() {
    let broker = Mosquitto::start().await;
    let sink = MqttSink::new(MqttConfig {
        retain: true,
        ..patient(&broker)
    })
    .unwrap();
    delivers(&sink, &batch("orders/last", 3)).await;
    let kept = Subscriber::start(&broker).await.next(1).await;
    assert!(kept[0].retain && kept[0].payload == "2");
}

#[tokio::test]
async fn a_topic_that_is_forbidden_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("acl");
    std::fs::write(&rules, "topic write open/#\ntopic read #\n").unwrap();
    // Without a limit of its queue, Mosquitto closes the connection of a refused client.
    let lines = [
        "max_queued_messages 10000".to_owned(),
        format!("acl_file {}", rules.display()),
    ];
    let broker = Mosquitto::start_with(Options::lines(lines)).await;
    let mut subscriber = Subscriber::start(&broker).await;
    for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let sink = MqttSink::new(MqttConfig {
            qos,
            ..patient(&broker)
        })
        .unwrap();
        let messages = ["open/a", "secret", "open/b"].map(|topic| Arc::new(message(topic, "{}")));
        let outcomes = sink.publish(&messages).await;
        assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Delivered, &Outcome::Delivered));
        assert!(
            matches!(&outcomes[1], Outcome::Temporary(reason) if reason.text().contains("not authorized")),
            "{outcomes:?}"
        );
        subscriber.next(2).await;
        let fixed = MqttConfig {
            qos,
            topic: "secret".parse().unwrap(),
            ..patient(&broker)
        };
        for outcome in MqttSink::new(fixed).unwrap().publish(&messages).await {
            let down = matches!(&outcome, Outcome::SinkDown(reason) if reason.text().contains("not authorized"));
            assert!(down, "every message has this topic: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn who_may_not_log_in_is_told_without_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    // The output of `mosquitto_passwd` for hunter2.
    std::fs::write(&users, hashed("app", "hunter2", folder.path())).unwrap();
    let lines = [
        "allow_anonymous false".to_owned(),
        format!("password_file {}", users.display()),
    ];
    let broker = Mosquitto::start_with(Options::lines(lines)).await;
    for version in [Version::V5, Version::V311] {
        let with = |password: &str| {
            let config = MqttConfig {
                version,
                user: Some("app".into()),
                password: Some(password.into()),
                ..patient(&broker)
            };
            MqttSink::new(config).unwrap()
        };
        with("hunter2").check().await.unwrap();
        delivers(&with("hunter2"), &batch("a", 2)).await;
        let wrong = with("hunter3");
        let error = wrong.check().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        let outcomes = wrong.publish(&batch("a", 2)).await;
        for outcome in &outcomes {
            assert!(
                matches!(outcome, Outcome::SinkDown(_)) && !text(outcome).contains("hunter"),
                "{outcomes:?}"
            );
        }
        let in_url = format!("mqtt://app:hunter2@127.0.0.1:{}", broker.port());
        let in_url = MqttConfig {
            version,
            ..MqttConfig::new(&in_url).unwrap()
        };
        MqttSink::new(in_url).unwrap().check().await.unwrap();
    }
}

fn hashed(user: &str, password: &str, folder: &std::path::Path) -> String {
    let file = folder.join("made");
    let made = std::process::Command::new("mosquitto_passwd")
        .args(["-b", "-c"])
        .args([file.as_os_str(), user.as_ref(), password.as_ref()])
        .status()
        .expect("mosquitto_passwd comes with the package mosquitto: use `cargo xtask test`");
    assert!(made.success());
    std::fs::read_to_string(file).unwrap()
}
