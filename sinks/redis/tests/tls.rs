//! TLS: server and client certificates.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

use sendoff::Outcome;
use sendoff_sink_redis::RedisConfig;
use sendoff_testkit::servers::{Authority, Certificate, Options, Redis, RedisCluster};
use sendoff_wire::TlsConfig;

mod scene;
use scene::{down, publish_one, sink};

async fn outcome(url: &str, topic: &str, tls: TlsConfig, cluster: bool) -> Outcome {
    let mut config = RedisConfig::new(url).unwrap();
    config.tls = Some(tls);
    config.cluster = cluster;
    publish_one(&sink(config), topic).await
}

/// The outcome of a message for a server with this certificate, with settings that trust the CA of `trusted`.
async fn outcome_of(certificate: Certificate, trusted: &Certificate) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let redis = Redis::start_with(Options::tls(certificate)).await;
    outcome(&redis.tls_url(), "a", trusted.settings(folder.path(), false), false).await
}

#[tokio::test]
async fn a_server_that_proves_its_name_is_trusted() {
    let certificate = Authority::new().certificate(&["localhost"]);
    assert_eq!(outcome_of(certificate.clone(), &certificate).await, Outcome::Delivered);
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let certificate = Authority::new().certificate(&["elsewhere.example"]);
    let outcome = outcome_of(certificate.clone(), &certificate).await;
    assert!(down(&outcome).contains("certificate"), "{outcome:?}");
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let [ours, theirs] = [(); 2].map(|()| Authority::new().certificate(&["localhost"]));
    let outcome = outcome_of(theirs, &ours).await;
    assert!(down(&outcome).contains("certificate"), "{outcome:?}");
}

#[tokio::test]
async fn a_server_may_ask_who_we_are() {
    let authority = Authority::new();
    let redis = Redis::start_with(Options::mutual_tls(authority.certificate(&["localhost"]))).await;
    let folder = tempfile::tempdir().unwrap();
    for (tls, welcome) in authority.clients(folder.path()) {
        match outcome(&redis.tls_url(), "a", tls, false).await {
            Outcome::Delivered => assert!(welcome),
            other => {
                assert!(!welcome);
                down(&other);
            }
        }
    }
}

#[tokio::test]
async fn the_nodes_of_a_cluster_have_to_prove_their_names_and_may_ask_for_ours() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    // The nodes announce each other by IP address.
    let hosts = ["localhost", "127.0.0.1"];
    let cluster = RedisCluster::start_with(3, Options::mutual_tls(authority.certificate(&hosts))).await;
    let [(known, _), (silent, _), (stranger, _)] = authority.clients(folder.path());
    let url = cluster.nodes[0].tls_url();
    for topic in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(
            outcome(&url, topic, known.clone(), true).await,
            Outcome::Delivered,
            "{topic}"
        );
    }
    down(&outcome(&url, "a", silent.clone(), true).await);
    down(&outcome(&url, "a", stranger, true).await);

    let elsewhere = Options::tls(authority.certificate(&["elsewhere.example"]));
    let cluster = RedisCluster::start_with(1, elsewhere).await;
    down(&outcome(&cluster.nodes[0].tls_url(), "a", silent, true).await);
}
