//! URLs, headers and bodies built from messages.

use sendoff::{Outcome, Outgoing};
use sendoff_sink_http::{HeaderTemplate, HttpConfig, HttpSink};
use serde_json::Value;

use crate::message::{PAYLOAD, config, expect, plain, publish, sink};
use crate::server::{Seen, Server};
use crate::signatures::{OLD, verified};

/// The signed request that the server receives.
async fn seen(message: Outgoing, change: impl FnOnce(&mut HttpConfig)) -> Seen {
    let server = Server::status(200).await;
    let mut config = config(&server.url());
    config.secrets = vec![OLD.into()];
    change(&mut config);
    assert_eq!(
        publish(&HttpSink::new(config).unwrap(), message).await,
        Outcome::Delivered
    );
    let seen = server.only();
    assert!(verified(&seen, OLD), "{seen:?}");
    seen
}

fn with_header(name: &str, text: &str) -> impl FnOnce(&mut HttpConfig) {
    let (name, value) = (name.to_owned(), HeaderTemplate::parse(text).unwrap());
    |config| {
        config.headers.insert(name, value);
    }
}

fn of_tenant(tenant: &str) -> Outgoing {
    let mut message = plain(PAYLOAD);
    message.headers.insert("tenant", tenant);
    message
}

#[tokio::test]
async fn a_field_of_the_message_stays_within_its_place() {
    let server = Server::status(200).await;
    let sink = sink(&format!(
        "http://{}/{{topic}}/{{key|none}}?k={{key|none}}",
        server.address
    ));
    let mut message = plain(PAYLOAD);
    message.key = Some("../a?b&c".into());
    assert_eq!(publish(&sink, message).await, Outcome::Delivered);
    assert_eq!(publish(&sink, plain(PAYLOAD)).await, Outcome::Delivered);
    let uris: Vec<String> = server.seen().iter().map(|seen| seen.uri.to_string()).collect();
    assert_eq!(
        uris,
        [
            "/order.placed/..%2Fa%3Fb%26c?k=..%2Fa%3Fb%26c",
            "/order.placed/none?k=none"
        ]
    );
}

#[tokio::test]
async fn a_message_that_lacks_a_field_is_told_what() {
    let server = Server::status(200).await;
    let sink = sink(&format!("http://{}/{{key}}", server.address));
    expect(
        &publish(&sink, plain(PAYLOAD)).await,
        "permanent",
        &["no key", "{key|none}"],
    );
    let mut message = plain(PAYLOAD);
    message.key = Some("..".into());
    expect(&publish(&sink, message).await, "permanent", &["dots"]);
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_password_in_the_url_authenticates_and_is_not_told() {
    let server = Server::status(500).await;
    let url = format!("http://me:hunter2@{}/hook?token=hunter2", server.address);
    let outcome = publish(&HttpSink::new(config(&url)).unwrap(), plain(PAYLOAD)).await;
    expect(&outcome, "temporary", &[&server.address.to_string()]);
    let seen = server.only();
    assert_eq!(seen.header("authorization"), "Basic bWU6aHVudGVyMg==");
    assert_eq!(seen.uri.to_string(), "/hook?token=hunter2");
}

#[tokio::test]
async fn a_header_is_filled_in_for_each_message() {
    let seen = seen(
        of_tenant("shop-7"),
        with_header("X-Tenant", "t={header:tenant}/{key|none}"),
    )
    .await;
    assert_eq!(seen.header("x-tenant"), "t=shop-7/none");
    assert!(!seen.headers.contains_key("sendoff-encoded"));
}

#[tokio::test]
async fn a_header_out_of_a_message_cannot_bring_another_one() {
    let message = of_tenant("a\r\nx-admin: 1\r\n\r\n{}");
    let seen = seen(message, with_header("x-tenant", "{header:tenant}")).await;
    assert_eq!(seen.header("x-tenant"), "a%0D%0Ax-admin:%201%0D%0A%0D%0A{}");
    assert_eq!(seen.header("sendoff-encoded"), "tenant,x-tenant");
    assert!(!seen.headers.contains_key("x-admin"));
    assert_eq!(&seen.body[..], PAYLOAD.as_bytes());
}

#[tokio::test]
async fn a_configured_header_wins_over_that_of_the_message() {
    let mut message = of_tenant("b");
    message.headers.insert("X-Tenant", "gr\u{fc}n");
    let seen = seen(message, with_header("x-tenant", "{header:tenant}")).await;
    assert_eq!(seen.header("x-tenant"), "b");
    assert!(
        !seen.headers.contains_key("sendoff-encoded"),
        "the encoded header was not sent"
    );
}

#[tokio::test]
async fn a_body_is_filled_in_and_signed_as_it_is_sent() {
    let mut message = of_tenant("a\"}, \"admin\": {\"");
    message.key = Some("7".into());
    let id = message.id.to_string();
    let body = r#"{"id": "{id}", "event": {"type": "{topic}", "tenant": {header:tenant}}, "card": {payload}}"#;
    let seen = seen(message, |config| config.body = Some(body.into())).await;
    assert_eq!(seen.header("content-type"), "application/json");
    assert_eq!(seen.header("sendoff-key"), "7", "the rest of the message is in headers");
    let json: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(json["id"], id);
    assert_eq!(json["event"]["type"], "order.placed");
    assert_eq!(json["event"]["tenant"], "a\"}, \"admin\": {\"");
    assert_eq!(json["card"]["card"], "4111-hunter2");
    assert_eq!(json.as_object().unwrap().len(), 3, "{json}");
}

#[tokio::test]
async fn a_body_can_be_of_another_type() {
    let seen = seen(of_tenant("a&b=c"), |config| {
        config.body = Some("topic={topic}&tenant={header:tenant}".into());
        config.content_type = Some("application/x-www-form-urlencoded".into());
    })
    .await;
    assert_eq!(seen.header("content-type"), "application/x-www-form-urlencoded");
    assert_eq!(&seen.body[..], b"topic=order.placed&tenant=a%26b%3Dc");
}

#[tokio::test]
async fn a_message_that_does_not_fit_the_templates_is_told_why() {
    let server = Server::status(200).await;
    let outcome = async |change: fn(&mut HttpConfig), message: Outgoing| {
        let mut config = config(&server.url());
        change(&mut config);
        publish(&HttpSink::new(config).unwrap(), message).await
    };
    let header = outcome(
        |config| with_header("x-tenant", "hunter2{header:tenant}")(config),
        plain("{}"),
    )
    .await;
    expect(
        &header,
        "permanent",
        &["no header:tenant, and the header x-tenant", "retry"],
    );
    let body = outcome(
        |config| config.body = Some(r#"{"token": "hunter2", "key": "{key}"}"#.into()),
        plain("{}"),
    )
    .await;
    expect(&body, "permanent", &["no key, and the sink's body template", "retry"]);
    let payload = outcome(
        |config| config.body = Some(r#"{"a": {payload}}"#.into()),
        plain("hunter2"),
    )
    .await;
    expect(&payload, "permanent", &["payload is not JSON", "quotes"]);
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_body_that_is_larger_than_allowed_is_not_sent() {
    let server = Server::status(200).await;
    let mut config = config(&server.url());
    config.max_message_bytes = Some(PAYLOAD.len() + 1);
    let sink = HttpSink::new(config).unwrap();
    assert_eq!(publish(&sink, plain(PAYLOAD)).await, Outcome::Delivered);
    let outcome = publish(&sink, plain(&format!("{PAYLOAD}  "))).await;
    expect(
        &outcome,
        "permanent",
        &["25 bytes, and 24 are allowed", "max_message_bytes"],
    );
    assert_eq!(server.seen().len(), 1);
}
