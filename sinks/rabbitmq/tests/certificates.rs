//! A broker that requires a client certificate.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use sendoff::{Outcome, Sink as _};
use sendoff_sink_rabbitmq::RabbitMqConfig;
use sendoff_testkit::servers::{Authority, Options, RabbitMq};
use sendoff_wire::TlsConfig;

mod broker;
use broker::{Consumer, batch, down, sink, to_queues};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_certificate_lets_us_in_and_may_be_our_login() {
    let authority = Authority::new();
    let mut options = Options::mutual_tls(authority.certificate(&["localhost"]));
    options.lines = vec![
        "auth_mechanisms.1 = PLAIN".to_owned(),
        "auth_mechanisms.2 = EXTERNAL".to_owned(),
        "ssl_cert_login_from = common_name".to_owned(),
    ];
    let broker = RabbitMq::start_with(options).await;
    broker.enable_plugin("rabbitmq_auth_mechanism_ssl").await;
    broker.ctl(&["add_user", "relay", "never-used"]).await;
    broker
        .ctl(&["set_permissions", "-p", "/", "relay", "^$", ".*", "^$"])
        .await;
    let queue = Consumer::connect(&broker.url()).await.queue(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let publish = async |url: &str, tls: TlsConfig, external_auth: bool| {
        let config = RabbitMqConfig {
            tls: Some(tls),
            external_auth,
            ..to_queues(url)
        };
        sink(config).publish(&batch([&queue])).await.remove(0)
    };
    for (tls, welcome) in authority.clients(folder.path()) {
        match publish(&broker.tls_url(), tls, false).await {
            Outcome::Delivered => assert!(welcome),
            other => {
                assert!(!welcome);
                down(&other, &["RabbitMQ"]);
            }
        }
    }

    let nameless = broker.tls_url().replace("guest:guest@", "");
    let shown = |name: &str| authority.client_certificate(name).settings(folder.path(), true);
    assert_eq!(publish(&nameless, shown("relay"), true).await, Outcome::Delivered);
    down(&publish(&nameless, shown("nobody"), true).await, &["ACCESS_REFUSED"]);
}
