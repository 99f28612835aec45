//! The outcome of each status.

use std::time::Duration;

use sendoff::{Outcome, Sink};

use crate::message::{PAYLOAD, config, expect, message, messages, plain, publish, sink};
use crate::server::{Server, answer};
use sendoff_sink_http::{HeaderTemplate, HttpSink, Method};

#[tokio::test]
async fn every_2xx_is_delivered_and_the_payload_arrives_as_it_is() {
    for status in [200, 201, 202, 204, 299] {
        let server = Server::status(status).await;
        assert_eq!(publish(&sink(&server.url()), plain(PAYLOAD)).await, Outcome::Delivered);
        let seen = server.only();
        assert_eq!(
            (seen.method.as_str(), seen.uri.path(), &seen.body[..]),
            ("POST", "/hook", PAYLOAD.as_bytes())
        );
    }
}

#[tokio::test]
async fn each_class_of_refusal_has_its_outcome() {
    for (status, kind, words) in [
        (301, "permanent", ["301", "not followed"]),
        (302, "permanent", ["302", "not followed"]),
        (400, "permanent", ["400 Bad Request", "retry"]),
        (401, "down", ["401", "secrets"]),
        (404, "permanent", ["404 Not Found", "retry"]),
        (408, "temporary", ["408", "again"]),
        (413, "permanent", ["413", "23 bytes"]),
        (422, "permanent", ["422", "retry"]),
        (425, "temporary", ["425", "again"]),
        (429, "temporary", ["429", "requests_per_host"]),
        (500, "temporary", ["500 Internal Server Error", "again"]),
        (502, "down", ["502 Bad Gateway", "deferred"]),
        (503, "down", ["503", "deferred"]),
        (504, "down", ["504", "deferred"]),
        (507, "temporary", ["507", "again"]),
    ] {
        let server = Server::status(status).await;
        expect(&publish(&sink(&server.url()), plain(PAYLOAD)).await, kind, &words);
        assert_eq!(server.seen().len(), 1, "{status}: exactly one request");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Server::status(200).await;
    let to = target.url();
    let server = Server::answering(move |_| {
        let mut answer = answer(307);
        answer.headers_mut().insert("location", to.parse().unwrap());
        answer
    })
    .await;
    expect(
        &publish(&sink(&server.url()), plain(PAYLOAD)).await,
        "permanent",
        &["307"],
    );
    assert!(target.seen().is_empty());
}

#[tokio::test]
async fn the_delay_that_an_endpoint_asks_for_is_passed_on() {
    for (status, headers, delay) in [
        (429, &[("retry-after", "120")][..], Some(120)),
        (500, &[("retry-after", "7")], Some(7)),
        (503, &[("retry-after", "7")], Some(7)),
        (503, &[("retry-after", "whenever")], None),
        (
            503,
            &[
                ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"),
            ],
            Some(30),
        ),
    ] {
        let server = Server::answering(move |_| {
            let mut answer = answer(status);
            for (name, value) in headers {
                answer.headers_mut().insert(*name, value.parse().unwrap());
            }
            answer
        })
        .await;
        let outcome = publish(&sink(&server.url()), plain(PAYLOAD)).await;
        let (Outcome::Temporary(reason) | Outcome::SinkDown(reason)) = &outcome else {
            panic!("{status}: {outcome:?}");
        };
        assert_eq!(reason.asked_delay(), delay.map(Duration::from_secs), "{status}");
        assert_eq!(matches!(outcome, Outcome::SinkDown(_)), status == 503);
    }
}

#[tokio::test]
async fn an_outage_behind_a_gateway_takes_the_sink_down_and_one_odd_message_does_not() {
    let server = Server::answering(|seen| answer(if seen.body.ends_with(b"bad") { 502 } else { 200 })).await;
    let sink = sink(&format!("http://{}/{{topic}}", server.address));
    for outcome in sink
        .publish(&[plain("bad"), plain("bad")].map(std::sync::Arc::new))
        .await
    {
        expect(&outcome, "down", &["502 Bad Gateway", "messages are deferred"]);
    }
    assert_eq!(publish(&sink, plain(PAYLOAD)).await, Outcome::Delivered);
    expect(
        &publish(&sink, plain("bad")).await,
        "temporary",
        &["502", "tried again"],
    );
}

#[tokio::test]
async fn a_gateway_of_one_endpoint_of_many_is_that_messages_own() {
    let server = Server::status(503).await;
    let mut message = plain(PAYLOAD);
    message.headers.insert("url", server.url());
    expect(&publish(&sink("{header:url}"), message).await, "temporary", &["503"]);
}

#[tokio::test]
async fn a_refused_login_takes_the_sink_down_unless_the_message_brought_it() {
    let server = Server::status(401).await;
    for (authorization, kind) in [("Bearer hunter2", "down"), ("Bearer {header:token}", "permanent")] {
        let mut config = config(&format!("http://{}/{{topic}}", server.address));
        let value = HeaderTemplate::parse(authorization).unwrap();
        config.headers.insert("authorization".into(), value);
        let mut message = plain(PAYLOAD);
        message.headers.insert("token", "hunter2");
        let outcome = publish(&HttpSink::new(config).unwrap(), message).await;
        expect(&outcome, kind, &["401 Unauthorized"]);
    }
}

#[tokio::test]
async fn an_endpoint_that_is_gone_gets_nothing_more_and_its_messages_wait() {
    let server = Server::status(410).await;
    let sink = sink(&server.url());
    expect(
        &publish(&sink, plain(PAYLOAD)).await,
        "down",
        &["410 Gone", "routes", "restart"],
    );
    for outcome in sink.publish(&messages(20)).await {
        expect(&outcome, "down", &["410 Gone"]);
    }
    assert_eq!(server.seen().len(), 1, "no second request");
}

#[tokio::test]
async fn an_endpoint_of_many_that_is_gone_takes_only_its_own_messages_along() {
    let server = Server::answering(|seen| answer(if seen.uri.path() == "/a" { 410 } else { 200 })).await;
    let sink = sink(&format!("http://{}/{{key}}", server.address));
    let to = |key: &str| {
        let mut message = plain(PAYLOAD);
        message.key = Some(key.to_owned());
        message
    };
    expect(
        &publish(&sink, to("a")).await,
        "permanent",
        &["410 Gone", "restart the relay, then retry the message"],
    );
    expect(&publish(&sink, to("a")).await, "permanent", &["410 Gone"]);
    assert_eq!(publish(&sink, to("b")).await, Outcome::Delivered);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn outcomes_come_in_the_order_of_the_batch() {
    let server = Server::answering(|seen| answer(if seen.body.ends_with(b"bad") { 400 } else { 200 })).await;
    let mut batch = messages(60);
    for at in [3, 17, 59] {
        batch[at] = std::sync::Arc::new(plain("bad"));
    }
    let outcomes = sink(&server.url()).publish(&batch).await;
    assert_eq!(outcomes.len(), 60);
    for (at, outcome) in outcomes.iter().enumerate() {
        let kind = if [3, 17, 59].contains(&at) {
            "permanent"
        } else {
            "delivered"
        };
        expect(outcome, kind, &[]);
    }
    assert_eq!(server.seen().len(), 60);
}

#[tokio::test]
async fn it_can_put() {
    let server = Server::status(200).await;
    let mut config = config(&server.url());
    config.method = Method::Put;
    assert_eq!(
        publish(&HttpSink::new(config).unwrap(), plain(PAYLOAD)).await,
        Outcome::Delivered
    );
    assert_eq!(server.only().method.as_str(), "PUT");
}

#[tokio::test]
async fn a_sink_that_was_closed_says_so() {
    let server = Server::status(200).await;
    let sink = sink(&server.url());
    sink.close().await;
    expect(&sink.publish(&[message()]).await[0], "down", &["closed"]);
}

#[tokio::test]
async fn an_endless_answer_is_cut_off_and_does_not_change_what_it_means() {
    let server = Server::answering(|_| {
        let mut answer = answer(200);
        *answer.body_mut() = http_body_util::Full::from(vec![b'x'; 50 * 1024 * 1024]);
        answer
    })
    .await;
    let start = std::time::Instant::now();
    assert_eq!(publish(&sink(&server.url()), plain(PAYLOAD)).await, Outcome::Delivered);
    assert!(start.elapsed() < Duration::from_secs(5));
}
