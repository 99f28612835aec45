//! The content of a request in each format.

use sendoff::{Headers, Outcome, Outgoing};
use sendoff_sink_http::HttpSink;
use sendoff_wire::{Format, Secret};
use serde_json::Value;

use crate::message::{PAYLOAD, config, plain, publish};
use crate::server::{Seen, Server};

fn full() -> Outgoing {
    let mut message = plain(PAYLOAD);
    message.key = Some("Zoë 100%".into());
    message.aggregate_type = Some("order".into());
    message.aggregate_id = Some("42".into());
    message.schema_version = Some(3);
    message.headers = Headers::from_iter([
        ("traceparent", "00-ab-cd-01"),
        ("baggage", "a=1%202"),
        ("x-tenant", "müller\r\nhost: evil"),
        ("host", "evil.example"),
        ("content-length", "1"),
        ("webhook-id", "forged"),
        ("sendoff-id", "forged"),
    ]);
    message
}

async fn seen(format: Format, message: Outgoing) -> Seen {
    let server = Server::status(200).await;
    let mut config = config(&server.url());
    config.format = format;
    config.source = "/shop".into();
    config
        .headers
        .insert("authorization".into(), Secret::from("Bearer t0ken").into());
    assert_eq!(
        publish(&HttpSink::new(config).unwrap(), message).await,
        Outcome::Delivered
    );
    let seen = server.only();
    assert_eq!(seen.header("authorization"), "Bearer t0ken");
    assert_eq!(seen.header("host"), server.address.to_string());
    seen
}

#[tokio::test]
async fn raw_has_the_payload_in_the_body_and_the_rest_in_headers() {
    let message = full();
    let id = message.id.to_string();
    let seen = seen(Format::Raw, message).await;
    assert_eq!(&seen.body[..], PAYLOAD.as_bytes());
    for (name, value) in [
        ("content-type", "application/json"),
        ("webhook-id", id.as_str()),
        ("sendoff-id", id.as_str()),
        ("sendoff-topic", "order.placed"),
        ("sendoff-key", "Zo%C3%AB%20100%25"),
        ("sendoff-created-at", "1970-01-01T00:00:00.000000Z"),
        ("sendoff-aggregate-type", "order"),
        ("sendoff-aggregate-id", "42"),
        ("sendoff-schema-version", "3"),
        ("traceparent", "00-ab-cd-01"),
        ("baggage", "a=1%202"),
        ("x-tenant", "m%C3%BCller%0D%0Ahost:%20evil"),
        ("sendoff-encoded", "sendoff-key,x-tenant"),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
        assert_eq!(seen.headers.get_all(name).iter().count(), 1, "{name}");
    }
}

#[tokio::test]
async fn an_envelope_has_everything_in_the_body() {
    let mut message = full();
    message.headers.insert("a header", "that HTTP does not take");
    let id = message.id.to_string();
    let seen = seen(Format::Envelope, message).await;
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(body["id"], id);
    assert_eq!(body["payload"]["card"], "4111-hunter2");
    assert_eq!(body["headers"]["a header"], "that HTTP does not take");
    assert_eq!(seen.header("webhook-id"), id);
}

#[tokio::test]
async fn a_cloud_event_is_one_object() {
    let message = full();
    let id = message.id.to_string();
    let seen = seen(Format::CloudEvents, message).await;
    assert_eq!(
        seen.header("content-type"),
        "application/cloudevents+json; charset=utf-8"
    );
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(
        (
            body["id"].as_str(),
            body["source"].as_str(),
            body["type"].as_str(),
            body["specversion"].as_str()
        ),
        (Some(id.as_str()), Some("/shop"), Some("order.placed"), Some("1.0"))
    );
    assert_eq!(body["data"]["card"], "4111-hunter2");
}

#[tokio::test]
async fn a_binary_cloud_event_has_its_attributes_in_headers() {
    let message = full();
    let id = message.id.to_string();
    let seen = seen(Format::CloudEventsBinary, message).await;
    assert_eq!(&seen.body[..], PAYLOAD.as_bytes());
    for (name, value) in [
        ("content-type", "application/json"),
        ("ce-id", id.as_str()),
        ("ce-specversion", "1.0"),
        ("ce-source", "/shop"),
        ("ce-type", "order.placed"),
        ("ce-subject", "42"),
        ("ce-partitionkey", "Zo%C3%AB%20100%25"),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
}

#[tokio::test]
async fn a_header_whose_name_cannot_go_over_http_is_encoded_and_told() {
    let mut message = plain(PAYLOAD);
    message.headers.insert("ein n\u{e4}me", "x");
    message.headers.insert("sendoff-encoded-names", "forged");
    let seen = seen(Format::CloudEvents, message).await;
    assert_eq!(seen.header("ein%20n%c3%a4me"), "x");
    assert_eq!(seen.header("sendoff-encoded-names"), "ein%20n%C3%A4me");
    assert!(!seen.headers.contains_key("sendoff-encoded"));
}
