//! Servers that crash, hang, restart, or refuse the login.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::time::Duration;

use sendoff::{ErrorKind, Outcome, Sink as _};
use sendoff_sink_nats::{Mode, NatsConfig, NatsSink};
use sendoff_testkit::servers::{Authority, Nats, Options};
use sendoff_wire::TlsConfig;
use tokio::time::{Instant, timeout};

mod scene;
use scene::{batch, config, delivers, message, orders, pause, reader, sink, stored, stream, text};

async fn is_down(sink: &NatsSink) -> String {
    let begin = Instant::now();
    let outcomes = sink.publish(&batch("orders.placed", 3)).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Outcome::SinkDown(_))),
        "{outcomes:?}"
    );
    text(&outcomes[0]).to_owned()
}

#[tokio::test]
async fn a_dead_server_is_down_and_a_new_one_is_found() {
    let mut nats = Nats::start().await;
    stream(&reader(&nats).await, orders()).await;
    let sink = sink(&nats);
    sink.check().await.unwrap();
    delivers(&sink, &batch("orders.placed", 3)).await;
    nats.kill();
    // The first batch after the crash may still use the old connection.
    let outcomes = sink.publish(&batch("orders.placed", 3)).await;
    assert!(
        outcomes.iter().all(|outcome| *outcome != Outcome::Delivered),
        "{outcomes:?}"
    );
    is_down(&sink).await;
    assert_eq!(sink.check().await.unwrap_err().kind(), ErrorKind::Unreachable);
    nats.restart().await;
    delivers(&sink, &batch("orders.placed", 3)).await;
    assert_eq!(stored(&reader(&nats).await).await.len(), 6);
}

#[tokio::test]
async fn a_server_that_dies_under_a_batch_leaves_it_unknown_at_once() {
    let mut nats = Nats::start().await;
    stream(&reader(&nats).await, orders()).await;
    let config = NatsConfig {
        ack_timeout: Duration::from_secs(30),
        ..config(&nats)
    };
    let sink = Arc::new(NatsSink::new(config).unwrap());
    delivers(&sink, &batch("orders.placed", 1)).await;
    pause(&nats).await;
    let publishing = {
        let sink = Arc::clone(&sink);
        tokio::spawn(async move { sink.publish(&batch("orders.placed", 50)).await })
    };
    // After a while without an answer, the batch is sent.
    let mut publishing = std::pin::pin!(publishing);
    assert!(timeout(Duration::from_millis(300), &mut publishing).await.is_err());
    nats.kill();
    let outcomes = timeout(Duration::from_secs(5), publishing).await.unwrap().unwrap();
    assert_eq!(outcomes.len(), 50);
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Outcome::Unknown(_))),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn a_server_that_hangs_is_unknown_then_down_and_nothing_is_stored_twice() {
    let nats = Nats::start().await;
    stream(&reader(&nats).await, orders()).await;
    let sink = sink(&nats);
    delivers(&sink, &batch("orders.placed", 1)).await;
    let messages = batch("orders.placed", 20);
    pause(&nats).await;
    let outcomes = sink.publish(&messages).await;
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Outcome::Unknown(_))),
        "{outcomes:?}"
    );
    is_down(&sink).await;
    nats.resume();
    delivers(&sink, &messages).await;
    assert_eq!(stored(&reader(&nats).await).await.len(), 21);
}

#[tokio::test]
async fn a_batch_that_was_dropped_does_not_disturb_the_next() {
    let nats = Nats::start().await;
    stream(&reader(&nats).await, orders()).await;
    let sink = sink(&nats);
    delivers(&sink, &batch("orders.placed", 1)).await;
    for _ in 0..20 {
        let dropped = batch("nobody.listens", 200);
        let _ = timeout(Duration::from_micros(300), sink.publish(&dropped)).await;
        delivers(&sink, &batch("orders.placed", 20)).await;
    }
}

fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

async fn falls_to(count: usize) {
    while alive() > count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nothing_runs_on_after_closing() {
    let mut nats = Nats::start().await;
    let others = reader(&nats).await;
    stream(&others, orders()).await;
    let before = alive();
    let sink = sink(&nats);
    delivers(&sink, &batch("orders.placed", 5)).await;
    assert!(alive() > before);
    sink.close().await;
    assert!(
        timeout(Duration::from_secs(1), falls_to(before)).await.is_ok(),
        "{} of {before}",
        alive()
    );
    delivers(&sink, &batch("orders.placed", 5)).await;
    nats.kill();
    is_not_delivered(&sink).await;
    sink.close().await;
    // The other client of this test still tries to connect; the sink's client has ended.
    assert!(
        timeout(Duration::from_secs(5), falls_to(before)).await.is_ok(),
        "{} of {before}",
        alive()
    );
}

async fn is_not_delivered(sink: &NatsSink) {
    let outcomes = sink.publish(&batch("orders.placed", 3)).await;
    assert!(
        outcomes.iter().all(|outcome| *outcome != Outcome::Delivered),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn who_may_not_log_in_is_told_without_the_password() {
    let nats = Nats::start_with(Options::lines(["authorization { user: app, password: hunter2 }"])).await;
    let with = |password: &str| {
        let config = NatsConfig {
            user: Some("app".into()),
            password: Some(password.into()),
            ..config(&nats)
        };
        NatsSink::new(config).unwrap()
    };
    with("hunter2").check().await.unwrap();
    let why = is_down(&with("hunter3")).await;
    assert!(why.contains("check `user`") && !why.contains("hunter"), "{why}");
    assert_eq!(with("hunter3").check().await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(sink(&nats).check().await.unwrap_err().kind(), ErrorKind::Denied);
    let in_url = format!("nats://app:hunter2@127.0.0.1:{}", nats.port());
    NatsSink::new(NatsConfig::new(&in_url).unwrap())
        .unwrap()
        .check()
        .await
        .unwrap();
}

#[tokio::test]
async fn tokens_and_nkeys_log_in() {
    let nats = Nats::start_with(Options::lines(["authorization { token: hunter2 }"])).await;
    let config = NatsConfig {
        token: Some("hunter2".into()),
        ..config(&nats)
    };
    NatsSink::new(config).unwrap().check().await.unwrap();
    let in_url = format!("nats://hunter2@127.0.0.1:{}", nats.port());
    NatsSink::new(NatsConfig::new(&in_url).unwrap())
        .unwrap()
        .check()
        .await
        .unwrap();

    let key = nkeys::KeyPair::new_user();
    let users = format!("authorization {{ users = [ {{ nkey: {} }} ] }}", key.public_key());
    let nats = Nats::start_with(Options::lines([users])).await;
    let with = |seed: String| {
        NatsSink::new(NatsConfig {
            nkey: Some(seed.into()),
            ..scene::config(&nats)
        })
        .unwrap()
    };
    with(key.seed().unwrap()).check().await.unwrap();
    let stranger = with(nkeys::KeyPair::new_user().seed().unwrap());
    assert_eq!(stranger.check().await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(
        with("no seed".into()).check().await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[tokio::test]
async fn only_a_server_with_the_right_name_is_trusted() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, authority.pem()).unwrap();
    for (hosts, is_right) in [(["localhost"], true), (["elsewhere.example"], false)] {
        let nats = Nats::start_with(Options::tls(authority.certificate(&hosts))).await;
        let trusting = NatsConfig {
            tls: Some(TlsConfig {
                ca_file: Some(ca_file.clone()),
                ..TlsConfig::default()
            }),
            ..config(&nats)
        };
        let checked = NatsSink::new(trusting).unwrap().check().await;
        if is_right {
            checked.unwrap();
        } else {
            let error = checked.unwrap_err();
            assert!(
                error.kind() == ErrorKind::Denied && error.to_string().contains("host name"),
                "{error}"
            );
        }
        // No CA of the system signed it.
        let error = sink(&nats).check().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
    // A client that requires TLS sends nothing to a server without TLS.
    let plain = Nats::start().await;
    let wants = NatsConfig {
        tls: Some(TlsConfig {
            ca_file: Some(ca_file),
            ..TlsConfig::default()
        }),
        ..config(&plain)
    };
    assert!(NatsSink::new(wants).unwrap().check().await.is_err());
}

#[tokio::test]
async fn a_server_may_ask_who_we_are() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start_with(Options::mutual_tls(authority.certificate(&["localhost"]))).await;
    for (tls, welcome) in authority.clients(folder.path()) {
        let config = NatsConfig {
            tls: Some(tls),
            ..config(&nats)
        };
        let checked = NatsSink::new(config).unwrap().check().await;
        assert_eq!(checked.is_ok(), welcome, "{checked:?}");
    }
}

#[tokio::test]
async fn core_messages_count_once_the_server_has_read_them() {
    let mut nats = Nats::start().await;
    let client = async_nats::connect(nats.url()).await.unwrap();
    let mut subscriber = client.subscribe("orders.>").await.unwrap();
    client.flush().await.unwrap();
    let core = NatsConfig {
        mode: Mode::Core,
        ..config(&nats)
    };
    let sink = NatsSink::new(core).unwrap();
    sink.check().await.unwrap();
    let messages = batch("orders.placed", 100);
    // The subscription exists once the server has read it; an echoed message proves that.
    while timeout(Duration::from_millis(200), futures::StreamExt::next(&mut subscriber))
        .await
        .is_err()
    {
        delivers(&sink, &[Arc::new(message("orders.probe", "{}"))]).await;
    }
    delivers(&sink, &messages).await;
    let mut received = Vec::new();
    while received.len() < 100 {
        let next = futures::StreamExt::next(&mut subscriber);
        let message = timeout(Duration::from_secs(5), next).await.unwrap().unwrap();
        if message.subject.as_str() == "orders.placed" {
            received.push(message.payload);
        }
    }
    assert_eq!(
        received,
        messages
            .iter()
            .map(|message| message.payload.clone())
            .collect::<Vec<_>>()
    );
    pause(&nats).await;
    let outcomes = sink.publish(&messages).await;
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Outcome::Unknown(_))),
        "{outcomes:?}"
    );
    nats.kill();
    is_down(&sink).await;
    nats.restart().await;
    delivers(&sink, &messages).await;
}
