//! Server certificates.

use hyper::Version;
use sendoff::{ErrorKind, Outcome, Sink};
use sendoff_sink_http::HttpSink;
use sendoff_wire::TlsConfig;

use crate::authority::Authority;
use crate::message::{PAYLOAD, config, expect, messages, plain, publish};
use crate::server::{Server, answer};

fn sink(server: &Server, trusted: &Authority) -> HttpSink {
    let mut config = config(&format!("https://localhost:{}/", server.address.port()));
    config.tls = Some(TlsConfig {
        ca_file: Some(trusted.file()),
        ..TlsConfig::default()
    });
    HttpSink::new(config).unwrap()
}

#[tokio::test]
async fn a_server_with_the_right_certificate_is_called_by_http_1_and_by_http_2() {
    for (protocol, version) in [(&b"http/1.1"[..], Version::HTTP_11), (b"h2", Version::HTTP_2)] {
        let authority = Authority::new();
        let tls = authority.acceptor("localhost", &[protocol]);
        let server = Server::start(Some(tls), |_| async { answer(200) }).await;
        let sink = sink(&server, &authority);
        sink.check().await.unwrap();
        assert!(server.seen().is_empty(), "a check sends nothing");
        let outcomes = sink.publish(&messages(30)).await;
        assert!(
            outcomes.iter().all(|outcome| *outcome == Outcome::Delivered),
            "{outcomes:?}"
        );
        assert!(server.seen().iter().all(|seen| seen.version == version));
    }
}

#[tokio::test]
async fn a_server_with_another_name_is_refused() {
    let authority = Authority::new();
    let tls = authority.acceptor("other.example", &[]);
    let server = Server::start(Some(tls), |_| async { answer(200) }).await;
    let sink = sink(&server, &authority);
    expect(
        &publish(&sink, plain(PAYLOAD)).await,
        "down",
        &["certificate", "localhost"],
    );
    let error = sink.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_server_with_a_certificate_by_a_stranger_is_refused() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let tls = stranger.acceptor("localhost", &[]);
    let server = Server::start(Some(tls), |_| async { answer(200) }).await;
    let sink = sink(&server, &authority);
    expect(&publish(&sink, plain(PAYLOAD)).await, "down", &["certificate"]);
    assert!(sink.check().await.is_err());
    assert!(server.seen().is_empty());
}
