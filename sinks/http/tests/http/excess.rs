//! Headers and URLs that are too large.

use std::sync::Arc;

use sendoff::{Outcome, Sink as _};
use sendoff_sink_http::{HttpConfig, HttpSink};
use sendoff_wire::TlsConfig;

use crate::authority::Authority;
use crate::message::{PAYLOAD, config, expect, messages, plain, publish};
use crate::server::{Server, answer};

#[tokio::test]
async fn too_many_or_too_large_headers_are_refused_and_nothing_panics() {
    let server = Server::status(200).await;
    let roomy = HttpConfig {
        max_header_bytes: 100 << 20,
        ..config(&server.url())
    };
    for (config, count, size, words) in [
        (roomy.clone(), 24_000, 1, ["24003 headers", "20000"]),
        (roomy, 100_000, 1, ["100003 headers", "20000"]),
        (
            config(&server.url()),
            19_000,
            1,
            ["bytes, and 65536", "max_header_bytes"],
        ),
        (
            config(&server.url()),
            1,
            1 << 20,
            ["bytes, and 65536", "max_header_bytes"],
        ),
    ] {
        let mut message = plain(PAYLOAD);
        for n in 0..count {
            message.headers.insert(format!("h{n}"), "v".repeat(size));
        }
        let mut batch = messages(10);
        batch[4] = Arc::new(message);
        let outcomes = HttpSink::new(config).unwrap().publish(&batch).await;
        for (at, outcome) in outcomes.iter().enumerate() {
            match at {
                4 => expect(outcome, "permanent", &words),
                _ => assert_eq!(*outcome, Outcome::Delivered),
            }
        }
    }
}

#[tokio::test]
async fn a_url_that_is_too_long_is_refused_without_being_told() {
    let server = Server::status(200).await;
    let sink = HttpSink::new(HttpConfig {
        max_header_bytes: 100 << 20,
        ..config(&format!("http://{}/{{header:path}}", server.address))
    })
    .unwrap();
    let mut message = plain(PAYLOAD);
    message.headers.insert("path", "hunter2".repeat(100_000));
    let outcome = publish(&sink, message).await;
    expect(&outcome, "permanent", &["cannot be built"]);
}

#[tokio::test]
async fn a_message_that_ends_a_connection_which_others_are_on_fails_alone() {
    let authority = Authority::new();
    let tls = authority.acceptor("127.0.0.1", &[b"h2"]);
    let server = Server::start(Some(tls), |_| async { answer(200) }).await;
    let sink = HttpSink::new(HttpConfig {
        max_header_bytes: 100 << 20,
        requests_per_host: 64,
        tls: Some(TlsConfig {
            ca_file: Some(authority.file()),
            ..TlsConfig::default()
        }),
        ..config(&server.url().replace("http:", "https:"))
    })
    .unwrap();
    for at in [0, 20, 39] {
        let mut batch = messages(40);
        let mut large = plain(PAYLOAD);
        // Far beyond what the server reads of one request: it closes the connection with all requests on it.
        large.headers.insert("x-large", "v".repeat(8 << 20));
        batch[at] = Arc::new(large);
        let mut outcomes = sink.publish(&batch).await;
        let own = outcomes.remove(at);
        assert!(
            outcomes.iter().all(|outcome| *outcome == Outcome::Delivered),
            "{outcomes:?}"
        );
        assert!(!matches!(own, Outcome::SinkDown(_) | Outcome::Delivered), "{own:?}");
    }
}
