//! Encryption and logins, on a Kafka-compatible broker (tansu) behind a TLS proxy.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed unwrap fails the test"
)]

use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use sendoff::{ErrorKind, Outcome, Sink as _};
use sendoff_sink_kafka::{KafkaConfig, KafkaSink, Mechanism};
use sendoff_testkit::TlsProxy;
use sendoff_testkit::servers::{Authority, Kafka};
use sendoff_wire::TlsConfig;
use tempfile::TempDir;

mod scene;
use scene::{batch, create, delivers, stored, text};

const PASSWORD: &str = "hunter2-of-kafka";

struct Scene {
    broker: Kafka,
    proxy: TlsProxy,
    authority: Authority,
    folder: TempDir,
}

impl Scene {
    /// A broker behind TLS, with a certificate for this host, that advertises localhost.
    async fn with_certificate_for(host: &str) -> Self {
        let mut broker = Kafka::start().await;
        create(&broker.address(), "orders").await;
        let authority = Authority::new();
        let proxy = TlsProxy::start(broker.port(), &authority.certificate(&[host])).await;
        broker.advertise(&format!("localhost:{}", proxy.port())).await;
        let folder = tempfile::tempdir().unwrap();
        Self {
            broker,
            proxy,
            authority,
            folder,
        }
    }

    /// Settings for the proxy on localhost, with this CA.
    fn trusting(&self, authority: &Authority) -> KafkaConfig {
        let ca_file = self.folder.path().join("ca.pem");
        std::fs::write(&ca_file, authority.pem()).unwrap();
        KafkaConfig {
            tls: Some(TlsConfig {
                ca_file: Some(ca_file),
                ..TlsConfig::default()
            }),
            ..plain(self.proxy.port())
        }
    }

    fn config(&self) -> KafkaConfig {
        self.trusting(&self.authority)
    }

    fn count(&self) -> u32 {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let database = Connection::open_with_flags(self.broker.database(), flags).unwrap();
        database.busy_timeout(Duration::from_secs(30)).unwrap();
        database
            .query_row("select count(*) from record", [], |row| row.get(0))
            .unwrap()
    }

    /// Checks that the sink refuses the broker, that the errors contain all of these words, and that the broker
    /// received nothing.
    async fn is_refused(&self, config: KafkaConfig, kind: ErrorKind, words: &[&str]) {
        let sink = KafkaSink::new(config).unwrap();
        let sent = batch(2);
        // One attempt serves both, and takes as long as the sink may wait.
        let (checked, outcomes) = tokio::join!(sink.check(), sink.publish(&sent));
        let error = checked.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        for outcome in &outcomes {
            assert!(matches!(outcome, Outcome::SinkDown(_)), "{outcome:?}");
        }
        for said in [text(&outcomes[0]), &error.to_string()] {
            assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
        }
        let all = format!("{error} {error:?} {outcomes:?}");
        assert!(!all.contains(PASSWORD), "{all}");
        assert_eq!(self.count(), 0);
    }
}

/// These settings, with short timeouts for a server that never answers.
fn impatient(config: KafkaConfig) -> KafkaConfig {
    KafkaConfig {
        connect_timeout: Duration::from_secs(2),
        ..config
    }
}

/// Settings for this port of localhost, without encryption.
fn plain(port: u16) -> KafkaConfig {
    KafkaConfig {
        connect_timeout: Duration::from_secs(8),
        ack_timeout: Duration::from_secs(30),
        ..KafkaConfig::new([format!("localhost:{port}")])
    }
}

#[tokio::test]
async fn what_was_sent_encrypted_is_stored() {
    let mut scene = Scene::with_certificate_for("localhost").await;
    let sink = KafkaSink::new(scene.config()).unwrap();
    sink.check().await.unwrap();
    delivers(&sink, &batch(30)).await;
    sink.close().await;
    let address = scene.broker.address();
    scene.broker.advertise(&address).await;
    stored(&address, 30).await;
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused_with_advice() {
    let scene = Scene::with_certificate_for("elsewhere.example").await;
    let words = ["certificate", "host names"];
    scene.is_refused(scene.config(), ErrorKind::Denied, &words).await;
}

#[tokio::test]
async fn a_broker_that_sends_us_to_another_host_than_its_certificate_is_for_gets_nothing() {
    let mut scene = Scene::with_certificate_for("localhost").await;
    let elsewhere = format!("127.0.0.1:{}", scene.proxy.port());
    scene.broker.advertise(&elsewhere).await;
    let sink = KafkaSink::new(KafkaConfig {
        ack_timeout: Duration::from_secs(8),
        ..scene.config()
    })
    .unwrap();
    let outcomes = sink.publish(&batch(2)).await;
    for outcome in &outcomes {
        let said = text(outcome);
        assert!(
            said.contains("certificate") || said.contains("tls.ca_file"),
            "{outcome:?}"
        );
    }
    assert_eq!(scene.count(), 0);
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused_with_advice() {
    let scene = Scene::with_certificate_for("localhost").await;
    let strange = scene.trusting(&Authority::new());
    // No CA of the system signed it, either.
    let system = KafkaConfig {
        tls: Some(TlsConfig::default()),
        ..plain(scene.proxy.port())
    };
    let words = ["certificate", "tls.ca_file"];
    tokio::join!(
        scene.is_refused(strange, ErrorKind::Denied, &words),
        scene.is_refused(system, ErrorKind::Denied, &words),
    );
}

#[tokio::test]
async fn who_wants_encryption_sends_nothing_without_it() {
    let scene = Scene::with_certificate_for("localhost").await;
    let encrypted = KafkaConfig {
        brokers: vec![format!("localhost:{}", scene.broker.port())],
        user: Some("app".to_owned()),
        password: Some(PASSWORD.into()),
        ..scene.config()
    };
    tokio::join!(
        // tansu reads the TLS handshake as the start of a very long request, and waits for its rest.
        scene.is_refused(
            impatient(encrypted),
            ErrorKind::Unreachable,
            &["whether the brokers require TLS"]
        ),
        // A client without TLS gets an error from a server with TLS.
        scene.is_refused(
            impatient(plain(scene.proxy.port())),
            ErrorKind::Unreachable,
            &["whether the brokers require TLS"]
        ),
    );
}

#[tokio::test]
async fn a_login_is_proved_over_tls_and_the_password_is_never_told() {
    let mut scene = Scene::with_certificate_for("localhost").await;
    scene.broker.require_login("app", PASSWORD).await;
    let logged_in = |mechanism, password: &str| KafkaConfig {
        user: Some("app".to_owned()),
        password: Some(password.into()),
        mechanism,
        ..scene.config()
    };
    let wrong = format!("{PASSWORD}-but-wrong");
    let is_refused = |mechanism| scene.is_refused(logged_in(mechanism, &wrong), ErrorKind::Denied, &["password"]);
    tokio::join!(is_refused(Mechanism::ScramSha256), is_refused(Mechanism::ScramSha512));
    for mechanism in [Mechanism::ScramSha256, Mechanism::ScramSha512] {
        delivers(&KafkaSink::new(logged_in(mechanism, PASSWORD)).unwrap(), &batch(5)).await;
    }
    assert_eq!(scene.count(), 10);
}
