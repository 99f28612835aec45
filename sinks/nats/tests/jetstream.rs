//! Streams of a real server: stored and refused messages.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use sendoff::{Outcome, Sink as _};
use sendoff_sink_nats::{NatsConfig, NatsSink};
use sendoff_testkit::servers::{Nats, Options};
use tokio::time::Instant;

mod scene;
use scene::{batch, config, delivers, message, orders, reader, sink, stored, stream, text};

#[tokio::test]
async fn messages_are_stored_in_order_with_all_they_have() {
    let nats = Nats::start().await;
    let reader = reader(&nats).await;
    stream(&reader, orders()).await;
    let sink = sink(&nats);
    let mut full = message("orders.placed", b"\0\xff binary".to_vec());
    full.content_type = Some("application/octet-stream".into());
    full.headers.insert("traceparent", "00-ab");
    full.headers.insert("Nats-Rollup", "all");
    full.headers.insert("nats-expected-last-sequence", "99");
    full.headers.insert("note", "one\r\nNats-Rollup: all 100%");
    full.headers.insert("odd: näme", "x");
    let full = Arc::new(full);
    let mut messages = batch("orders.many", 300);
    messages.push(Arc::clone(&full));
    messages.push(Arc::new(message("orders.empty", "")));
    delivers(&sink, &messages).await;
    let stored = stored(&reader).await;
    assert_eq!(stored.len(), messages.len());
    for (stored, sent) in stored.iter().zip(&messages) {
        assert_eq!(
            (&stored.payload, stored.subject.as_str()),
            (&sent.payload, sent.topic.as_str())
        );
        assert_eq!(stored.headers.get("Nats-Msg-Id").unwrap().as_str(), sent.id.to_string());
        assert_eq!(stored.headers.get("sendoff-id").unwrap().as_str(), sent.id.to_string());
    }
    let headers = &stored[300].headers;
    let header = |name: &str| {
        headers
            .get(name)
            .map(|value| value.as_str().to_owned())
            .unwrap_or_default()
    };
    assert_eq!(header("Content-Type"), "application/octet-stream");
    assert_eq!(header("traceparent"), "00-ab");
    assert_eq!(header("sendoff-key"), "customer-7");
    assert_eq!(header("note"), "one%0D%0ANats-Rollup:%20all%20100%25");
    assert_eq!(header("odd%3A%20n%C3%A4me"), "x");
    assert_eq!(header("sendoff-encoded"), "note");
    assert_eq!(header("sendoff-encoded-names"), "odd%3A%20n%C3%A4me");
    assert_eq!(
        header("Nats-Rollup"),
        "",
        "a message cannot send commands to the server"
    );
}

#[tokio::test]
async fn a_second_copy_is_delivered_and_stored_once() {
    let nats = Nats::start().await;
    let reader = reader(&nats).await;
    stream(&reader, orders()).await;
    let messages = batch("orders.placed", 3);
    delivers(&sink(&nats), &messages).await;
    delivers(&sink(&nats), &messages).await;
    assert_eq!(stored(&reader).await.len(), 3);
}

#[tokio::test]
async fn a_batch_beyond_the_window_keeps_its_order() {
    let nats = Nats::start().await;
    let reader = reader(&nats).await;
    stream(&reader, orders()).await;
    let config = NatsConfig {
        max_in_flight: 7,
        ..config(&nats)
    };
    let messages = batch("orders.placed", 100);
    delivers(&NatsSink::new(config).unwrap(), &messages).await;
    let payloads: Vec<_> = stored(&reader)
        .await
        .into_iter()
        .map(|message| message.payload)
        .collect();
    let sent: Vec<_> = messages.iter().map(|message| message.payload.clone()).collect();
    assert_eq!(payloads, sent);
}

#[tokio::test]
async fn a_subject_without_a_stream_is_permanent_with_advice_and_the_others_go_on() {
    let nats = Nats::start().await;
    let reader = reader(&nats).await;
    stream(&reader, orders()).await;
    let sink = sink(&nats);
    let messages: Vec<_> = ["orders.a", "nobody.here", "orders.b", "nobody.here", "bad..subject"]
        .map(|topic| Arc::new(message(topic, "{}")))
        .into();
    let outcomes = sink.publish(&messages).await;
    assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Delivered, &Outcome::Delivered));
    for at in [1, 3] {
        assert!(matches!(outcomes[at], Outcome::Permanent(_)), "{outcomes:?}");
        assert!(
            text(&outcomes[at]).contains("create a stream that covers it"),
            "{outcomes:?}"
        );
        assert!(text(&outcomes[at]).contains("nobody.here"), "{outcomes:?}");
    }
    assert!(matches!(&outcomes[4], Outcome::Permanent(reason) if reason.text().contains("empty token")));
}

#[tokio::test]
async fn a_full_stream_is_temporary_and_a_message_too_large_for_it_is_permanent() {
    let nats = Nats::start().await;
    let reader = reader(&nats).await;
    let limits = Config {
        max_messages: 2,
        max_message_size: 2000,
        discard: DiscardPolicy::New,
        ..orders()
    };
    stream(&reader, limits).await;
    let sink = sink(&nats);
    let large = [Arc::new(message("orders.large", vec![b'x'; 3000]))];
    let outcomes = sink.publish(&large).await;
    assert!(
        matches!(&outcomes[0], Outcome::Permanent(reason) if reason.text().contains("max_msg_size")),
        "{outcomes:?}"
    );
    let outcomes = sink.publish(&batch("orders.placed", 4)).await;
    assert_eq!(outcomes[..2], [Outcome::Delivered, Outcome::Delivered]);
    for outcome in &outcomes[2..] {
        assert!(
            matches!(outcome, Outcome::Temporary(_)) && text(outcome).contains("maximum messages"),
            "{outcomes:?}"
        );
    }
}

#[tokio::test]
async fn a_message_over_the_limit_of_the_server_is_permanent_and_names_both_sizes() {
    let nats = Nats::start_with(Options::lines(["max_payload: 4096"])).await;
    let reader = reader(&nats).await;
    stream(&reader, orders()).await;
    let sink = sink(&nats);
    // Headers count: a payload just below the limit is too large, too.
    for size in [4000, 5000] {
        let messages = [
            Arc::new(message("orders.a", vec![b'x'; size])),
            Arc::new(message("orders.b", "{}")),
        ];
        let outcomes = sink.publish(&messages).await;
        assert!(matches!(outcomes[0], Outcome::Permanent(_)), "{outcomes:?}");
        assert!(text(&outcomes[0]).contains("the server accepts 4096"), "{outcomes:?}");
        assert_eq!(outcomes[1], Outcome::Delivered);
    }
    let fits = [Arc::new(message("orders.a", vec![b'x'; 3500]))];
    delivers(&sink, &fits).await;
}

#[tokio::test]
async fn a_server_without_jetstream_is_down_and_says_so() {
    let nats = Nats::start_with(Options::lines(["jetstream: disabled"])).await;
    let sink = sink(&nats);
    let outcomes = sink.publish(&batch("orders.placed", 2)).await;
    for outcome in &outcomes {
        assert!(
            matches!(outcome, Outcome::SinkDown(_)) && text(outcome).contains("enable"),
            "{outcomes:?}"
        );
    }
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("JetStream"), "{error}");
}

#[tokio::test]
async fn a_stream_that_was_named_must_be_the_one() {
    let nats = Nats::start().await;
    let reader = reader(&nats).await;
    stream(&reader, orders()).await;
    let named = |name: &str| {
        NatsSink::new(NatsConfig {
            stream: Some(name.into()),
            ..config(&nats)
        })
        .unwrap()
    };
    named("orders").check().await.unwrap();
    delivers(&named("orders"), &batch("orders.placed", 1)).await;
    let other = named("other");
    assert!(other.check().await.unwrap_err().to_string().contains("other"));
    let outcomes = other.publish(&batch("orders.placed", 1)).await;
    assert!(matches!(outcomes[0], Outcome::Permanent(_)), "{outcomes:?}");
}

#[tokio::test]
async fn fields_of_a_message_cannot_leave_their_token() {
    let nats = Nats::start().await;
    let reader = reader(&nats).await;
    stream(&reader, orders()).await;
    let config = NatsConfig {
        subject: "orders.{header:tenant|none}.{topic}".parse().unwrap(),
        ..config(&nats)
    };
    let sink = NatsSink::new(config).unwrap();
    let mut wild = message("placed.now", "{}");
    wild.headers.insert("tenant", "a.b > *");
    delivers(&sink, &[Arc::new(wild), Arc::new(message("x", "{}"))]).await;
    let subjects: Vec<_> = stored(&reader)
        .await
        .into_iter()
        .map(|message| message.subject.to_string())
        .collect();
    assert_eq!(subjects, ["orders.a%2Eb%20%3E%20%2A.placed.now", "orders.none.x"]);
}

#[tokio::test]
async fn a_subject_that_is_forbidden_fails_alone_and_soon() {
    let permissions = "authorization { users = [ { user: all, password: x }, \
        { user: app, password: hunter2, permissions: { publish: { deny: \"orders.secret\" } } } ] }";
    let nats = Nats::start_with(Options::lines([permissions])).await;
    let admin = async_nats::ConnectOptions::with_user_and_password("all".into(), "x".into());
    let admin = async_nats::jetstream::new(admin.connect(nats.url()).await.unwrap());
    stream(&admin, orders()).await;
    let config = NatsConfig {
        user: Some("app".into()),
        password: Some("hunter2".into()),
        ack_timeout: Duration::from_secs(20),
        ..config(&nats)
    };
    let fixed = NatsConfig {
        subject: "orders.secret".parse().unwrap(),
        ..config.clone()
    };
    for outcome in NatsSink::new(fixed).unwrap().publish(&batch("x", 3)).await {
        let down = matches!(&outcome, Outcome::SinkDown(reason) if reason.text().contains("permission"));
        assert!(down, "every message has this subject: {outcome:?}");
    }
    let sink = NatsSink::new(config).unwrap();
    for _ in 0..2 {
        let topics = ["orders.a", "orders.secret", "orders.b"];
        let messages = topics.map(|topic| Arc::new(message(topic, "{}")));
        let begin = Instant::now();
        let outcomes = sink.publish(&messages).await;
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Delivered, &Outcome::Delivered));
        assert!(
            matches!(&outcomes[1], Outcome::Temporary(reason) if reason.text().contains("permission")),
            "{outcomes:?}"
        );
    }
}
