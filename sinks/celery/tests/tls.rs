//! TLS connections to both brokers: trusted and untrusted certificates.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sendoff::store::{RowRef, Table};
use sendoff::{Outcome, Outgoing, Sink as _, Uuid};
use sendoff_celery::CONTENT_TYPE;
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_testkit::servers::{Authority, Options, RabbitMq, Redis};
use sendoff_wire::{Address, TlsConfig};

fn task() -> Arc<Outgoing> {
    Arc::new(Outgoing {
        id: Uuid::now_v7(),
        topic: "shop.add".into(),
        payload: r#"{"args": [1, 2]}"#.into(),
        content_type: Some(CONTENT_TYPE.into()),
        created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        ..Outgoing::blank(RowRef {
            table: Table::Ready,
            lane: 0,
            seq: 1,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        })
    })
}

async fn publish(url: &str, ca_file: PathBuf) -> Outcome {
    let tls = TlsConfig {
        ca_file: Some(ca_file),
        ..TlsConfig::default()
    };
    publish_with(url, Some(tls)).await
}

async fn publish_with(url: &str, tls: Option<TlsConfig>) -> Outcome {
    let config = CeleryConfig {
        url: Some(Address::parse(url).unwrap()),
        tls,
        declare: Declare::Active,
        ..CeleryConfig::default()
    };
    let sink = CelerySink::new(&config).unwrap();
    let outcome = sink.publish(&[task()]).await.remove(0);
    assert_eq!(
        sink.check().await.is_ok(),
        outcome == Outcome::Delivered,
        "the check must agree with {outcome:?}"
    );
    outcome
}

/// The certificate is for localhost, signed by this CA.
async fn only_the_right_server_gets_tasks(url: &str, authority: &Authority) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, authority: &Authority| {
        let path = folder.path().join(name);
        std::fs::write(&path, authority.pem()).unwrap();
        path
    };
    let (ours, other) = (file("ours.pem", authority), file("other.pem", &Authority::new()));
    assert_eq!(publish(url, ours.clone()).await, Outcome::Delivered);
    // In the form of Celery's documentation.
    let in_url = format!("{url}?ssl_cert_reqs=required&ssl_ca_certs={}", ours.display());
    assert_eq!(publish_with(&in_url, None).await, Outcome::Delivered);
    for (url, ca_file, word) in [
        (url.replace("localhost", "127.0.0.1"), ours, "host"),
        (url.to_owned(), other, "ca_file"),
    ] {
        let Outcome::SinkDown(reason) = publish(&url, ca_file).await else {
            panic!("{url} got a task that {word} forbids")
        };
        assert!(reason.text().contains(word), "{reason:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_with_a_certificate_of_another_host_or_authority_gets_nothing() {
    let authority = Authority::new();
    let broker = RabbitMq::start_with(Options::tls(authority.certificate(&["localhost"]))).await;
    only_the_right_server_gets_tasks(&broker.tls_url(), &authority).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_with_a_certificate_of_another_host_or_authority_gets_nothing() {
    let authority = Authority::new();
    let redis = Redis::start_with(Options::tls(authority.certificate(&["localhost"]))).await;
    only_the_right_server_gets_tasks(&redis.tls_url(), &authority).await;
}
