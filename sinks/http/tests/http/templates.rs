//! URLs made out of messages.

use sendoff::Outcome;
use sendoff_sink_http::HttpSink;

use crate::message::{PAYLOAD, config, expect, plain, publish, sink};
use crate::server::Server;

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
