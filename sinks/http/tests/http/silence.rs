//! Endpoints that cannot be reached, or do not answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sendoff::{ErrorKind, Outcome, Sink};
use sendoff_sink_http::HttpSink;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::message::{PAYLOAD, config, expect, messages, plain, publish, sink};
use crate::server::{Server, answer};

/// The address of a closed port.
async fn nobody() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_in_time_is_unknown() {
    let server = Server::start(None, |_| async {
        tokio::time::sleep(Duration::from_secs(600)).await;
        answer(200)
    })
    .await;
    let mut config = config(&server.url());
    config.connect_timeout = Duration::from_millis(200);
    config.request_timeout = Duration::from_millis(300);
    let outcome = publish(&HttpSink::new(config).unwrap(), plain(PAYLOAD)).await;
    expect(&outcome, "unknown", &["no answer within 500ms"]);
}

#[tokio::test]
async fn a_connection_that_is_reset_after_the_request_was_sent_is_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    for answer in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"nonsense\r\n\r\n"] {
        let sink = sink(&url);
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut got = Vec::new();
            while !got.ends_with(PAYLOAD.as_bytes()) {
                let mut buffer = [0; 1024];
                let count = stream.read(&mut buffer).await.unwrap();
                assert_ne!(count, 0, "the request ended early");
                got.extend_from_slice(&buffer[..count]);
            }
            stream.write_all(answer).await.unwrap();
            stream.set_zero_linger().unwrap();
        };
        let (outcome, ()) = tokio::join!(publish(&sink, plain(PAYLOAD)), serving);
        expect(&outcome, "unknown", &["before the answer", "sent again"]);
    }
}

#[tokio::test]
async fn a_fixed_endpoint_that_cannot_be_reached_is_a_sink_that_is_down() {
    let address = nobody().await;
    let sink = sink(&format!("http://{address}/secret-hunter2"));
    for outcome in sink.publish(&messages(200)).await {
        expect(&outcome, "down", &["cannot connect", "refused", &address.to_string()]);
    }
    let error = sink.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn a_fixed_host_that_cannot_be_reached_is_a_sink_that_is_down_whatever_the_path() {
    let address = nobody().await;
    let sink = sink(&format!("http://{address}/{{topic}}?token=hunter2"));
    for outcome in sink.publish(&messages(200)).await {
        expect(
            &outcome,
            "down",
            &["cannot connect", "messages are deferred", &address.to_string()],
        );
    }
    let error = sink.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "a check tries the host");
    let unnamed = HttpSink::new(config("http://no.such.host.invalid/{topic}")).unwrap();
    expect(&publish(&unnamed, plain(PAYLOAD)).await, "down", &["cannot connect"]);
}

#[tokio::test]
async fn while_a_host_is_silent_one_message_at_a_time_is_charged() {
    let server = Server::start(None, |seen| async move {
        if !seen.body.ends_with(b"quick") {
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        answer(200)
    })
    .await;
    let mut config = config(&format!("http://{}/{{topic}}", server.address));
    config.connect_timeout = Duration::from_millis(100);
    config.request_timeout = Duration::from_millis(200);
    config.requests_per_host = 4;
    let sink = HttpSink::new(config).unwrap();
    let charged = |outcomes: &[Outcome]| {
        let down = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Outcome::SinkDown(_)));
        let unknown = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Unknown(_)));
        assert_eq!(down.count() + unknown.clone().count(), outcomes.len(), "{outcomes:?}");
        unknown.count()
    };
    assert_eq!(charged(&sink.publish(&messages(20)).await), 4, "all requests under way");
    assert_eq!(
        charged(&sink.publish(&messages(20)).await),
        1,
        "the single message that was sent"
    );
    assert_eq!(server.seen().len(), 5);
    assert_eq!(publish(&sink, plain("quick")).await, Outcome::Delivered);
    assert_eq!(charged(&sink.publish(&messages(20)).await), 4, "it answered in between");
}

#[tokio::test]
async fn one_dead_host_does_not_stop_the_others() {
    let (server, dead) = (Server::status(200).await, nobody().await);
    let sink = sink("http://{header:host}/");
    let to = |host: std::net::SocketAddr| {
        let mut message = plain(PAYLOAD);
        message.headers.insert("host", host.to_string());
        Arc::new(message)
    };
    // A field is percent-encoded, so it cannot hold host and port: the whole URL must come from the message.
    expect(&sink.publish(&[to(dead)]).await[0], "permanent", &["URL"]);
    let sink = HttpSink::new(config("{header:url}")).unwrap();
    let to = |host: std::net::SocketAddr| {
        let mut message = plain(PAYLOAD);
        message.headers.insert("url", format!("http://{host}/"));
        Arc::new(message)
    };
    let batch: Vec<_> = (0..40)
        .map(|at| to(if at % 2 == 0 { dead } else { server.address }))
        .collect();
    for (at, outcome) in sink.publish(&batch).await.iter().enumerate() {
        if at % 2 == 0 {
            expect(outcome, "temporary", &["cannot connect", "tried again"]);
        } else {
            assert_eq!(*outcome, Outcome::Delivered);
        }
    }
}

/// A listener with a full backlog: the next connection hangs, as with a host that drops packets.
async fn black_hole() -> (std::net::SocketAddr, Vec<tokio::net::TcpStream>, TcpListener) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    for _ in 0..16 {
        let connecting = tokio::net::TcpStream::connect(address);
        match tokio::time::timeout(Duration::from_millis(300), connecting).await {
            Ok(stream) => held.push(stream.unwrap()),
            Err(_) => return (address, held, listener),
        }
    }
    panic!("a queue of length 0 took 16 connections");
}

#[tokio::test]
async fn a_host_that_swallows_connections_is_told_after_one_timeout_for_the_whole_batch() {
    let (address, _held, _listener) = black_hole().await;
    let mut config = config(&format!("http://{address}/"));
    config.connect_timeout = Duration::from_millis(500);
    config.requests_per_host = 2;
    let sink = HttpSink::new(config).unwrap();
    let start = Instant::now();
    for outcome in sink.publish(&messages(100)).await {
        expect(&outcome, "down", &["cannot connect"]);
    }
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}: one timeout per message",
        start.elapsed()
    );
    let error = sink.check().await.unwrap_err();
    assert!(error.to_string().contains("no answer within 500ms"), "{error}");
}

#[tokio::test]
async fn an_endpoint_that_is_too_slow_for_the_batch_says_so_about_what_was_not_sent() {
    let server = Server::start(None, |_| async {
        tokio::time::sleep(Duration::from_secs(600)).await;
        answer(200)
    })
    .await;
    let mut config = config(&server.url());
    config.connect_timeout = Duration::from_millis(100);
    config.request_timeout = Duration::from_millis(200);
    config.requests_per_host = 1;
    let sink = HttpSink::new(config).unwrap();
    let outcomes = sink.publish(&messages(10)).await;
    let unknown = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Unknown(_)))
        .count();
    assert_eq!(unknown, server.seen().len(), "sent messages are unknown");
    assert!((1..10).contains(&unknown), "{unknown}");
    for outcome in outcomes
        .iter()
        .filter(|outcome| !matches!(outcome, Outcome::Unknown(_)))
    {
        expect(outcome, "down", &["not sent", "too slow"]);
    }
}

#[tokio::test]
async fn a_sink_connects_again_by_itself() {
    let address = nobody().await;
    let sink = sink(&format!("http://{address}/"));
    expect(&publish(&sink, plain(PAYLOAD)).await, "down", &[]);
    let listener = TcpListener::bind(address).await.unwrap();
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        assert_ne!(stream.read(&mut buffer).await.unwrap(), 0);
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    };
    let (outcome, ()) = tokio::join!(publish(&sink, plain(PAYLOAD)), serving);
    assert_eq!(outcome, Outcome::Delivered);
}

#[tokio::test]
async fn a_check_notices_that_connections_are_closed_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sink = sink(&format!("http://{}/", listener.local_addr().unwrap()));
    let closing = async {
        drop(listener.accept().await.unwrap());
    };
    let (checked, ()) = tokio::join!(sink.check(), closing);
    let error = checked.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("closes connections"), "{error}");
}
