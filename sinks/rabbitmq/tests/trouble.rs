//! Brokers that crash, hang, run out of memory, or refuse the login.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lapin::ExchangeKind;
use lapin::types::FieldTable;
use sendoff::{ErrorKind, Outcome, Outgoing, Sink};
use sendoff_sink_rabbitmq::{RabbitMqConfig, RabbitMqSink};
use sendoff_testkit::servers::{Authority, Options, RabbitMq};
use sendoff_wire::TlsConfig;
use tokio::time::{Instant, sleep, timeout};

mod broker;
use broker::{Consumer, all_delivered, batch, down, ids, message, permanent, sink, to_queues};

/// How soon the sink must notice that a broker is unusable, and that it is usable again.
const SOON: Duration = Duration::from_secs(5);

/// Publishes until all messages are delivered, as a relay does.
async fn deliver(sink: &RabbitMqSink, mut rest: Vec<Arc<Outgoing>>) -> usize {
    let mut unknown = 0;
    while !rest.is_empty() {
        let outcomes = sink.publish(&rest).await;
        let mut outcomes = outcomes.iter();
        rest.retain(|_| match outcomes.next().unwrap() {
            Outcome::Delivered => false,
            Outcome::Unknown(_) => {
                unknown += 1;
                true
            }
            Outcome::SinkDown(_) => true,
            other => panic!("{other:?}"),
        });
    }
    unknown
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_alarm_is_noticed_and_so_is_its_end() {
    let broker = RabbitMq::start().await;
    let consumer = Consumer::connect(&broker.url()).await;
    let queue = consumer.queue(&[]).await;
    let sink = sink(to_queues(&broker.url()));
    let first = batch(vec![&queue; 10]);
    all_delivered(&sink.publish(&first).await);

    broker.memory_alarm(true).await;
    // A connection that confirmed just now is used; one that was idle for a second is checked first.
    sleep(Duration::from_millis(1_100)).await;
    let held = batch(vec![&queue; 100]);
    // The first call detects the block, the second one remembers it.
    for _ in 0..2 {
        let begin = Instant::now();
        for outcome in sink.publish(&held).await {
            down(&outcome, &["blocks publishers", "memory"]);
            let Outcome::SinkDown(reason) = outcome else {
                unreachable!()
            };
            assert!(reason.asked_delay().unwrap() < SOON);
        }
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    }
    assert_eq!(sink.check().await.unwrap_err().kind(), ErrorKind::Busy);
    let connections = broker.ctl(&["list_connections", "pid"]).await.lines().count();
    assert!(
        connections <= 4,
        "too many connections to a blocking broker: {connections}"
    );

    broker.memory_alarm(false).await;
    let begin = Instant::now();
    while matches!(sink.publish(&held).await[0], Outcome::SinkDown(_)) {
        assert!(begin.elapsed() < SOON);
        sleep(Duration::from_millis(100)).await;
    }
    // The check came before any message was sent, so there are no duplicates. Blocked connections do not matter.
    let expected: Vec<String> = ids(&first).into_iter().chain(ids(&held)).collect();
    let arrived = consumer.drain(&queue).await;
    assert!(arrived == expected, "{} of {} arrived", arrived.len(), expected.len());
    sink.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_in_the_middle_of_traffic_loses_nothing() {
    let broker = RabbitMq::start().await;
    let consumer = Consumer::connect(&broker.url()).await;
    let queue = consumer.queue(&[]).await;
    let sink = sink(to_queues(&broker.url()));
    let mut published = Vec::new();
    let mut noticed = None;
    let alarm = async {
        broker.memory_alarm(true).await;
        Instant::now()
    };
    let traffic = async {
        // Until the sink is down; the broker blocks the last batch.
        loop {
            let messages = batch(vec![&queue; 200]);
            let outcomes = sink.publish(&messages).await;
            published.extend(messages);
            if let Some(other) = outcomes.iter().find(|outcome| **outcome != Outcome::Delivered) {
                down(other, &["blocks publishers"]);
                noticed = Some(Instant::now());
                return outcomes;
            }
        }
    };
    let (raised, outcomes) = tokio::join!(alarm, traffic);
    assert!(noticed.unwrap() < raised + SOON);
    let undelivered = outcomes
        .iter()
        .filter(|outcome| **outcome != Outcome::Delivered)
        .count();
    let rest = published.split_off(published.len() - 200);
    let begin = Instant::now();
    // Closing a blocked connection is quick, too.
    let other = broker::sink(to_queues(&broker.url()));
    down(&other.publish(&rest[..1]).await[0], &["blocks"]);
    other.close().await;
    assert!(begin.elapsed() < SOON);

    broker.memory_alarm(false).await;
    assert_eq!(timeout(SOON, deliver(&sink, rest.clone())).await, Ok(0));
    let arrived = consumer.drain(&queue).await;
    let all: HashSet<String> = ids(&published).into_iter().chain(ids(&rest)).collect();
    assert_eq!(arrived.iter().cloned().collect::<HashSet<_>>(), all);
    assert!(
        arrived.len() <= all.len() + 200,
        "{} copies, {undelivered} were unconfirmed",
        arrived.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_under_way_loses_nothing() {
    let mut broker = RabbitMq::start().await;
    let consumer = Consumer::connect(&broker.url()).await;
    let queue = consumer.queue(&[]).await;
    let sink = Arc::new(sink(to_queues(&broker.url())));
    sink.check().await.unwrap();
    let all = batch(vec![&queue; 6000]);
    let publishing = tokio::spawn({
        let (sink, all) = (Arc::clone(&sink), all.clone());
        async move {
            let mut unknown = 0;
            for part in all.chunks(500) {
                unknown += deliver(&sink, part.to_vec()).await;
            }
            unknown
        }
    });
    // Somewhere in the middle.
    while consumer
        .channel
        .queue_declare(
            queue.as_str().into(),
            lapin::options::QueueDeclareOptions {
                passive: true,
                ..Default::default()
            },
            FieldTable::default(),
        )
        .await
        .unwrap()
        .message_count()
        < 1000
    {
        sleep(Duration::from_millis(1)).await;
    }
    broker.kill();
    let begin = Instant::now();
    let outcome = sink.publish(&batch([&queue])).await.remove(0);
    down(&outcome, &["cannot connect", "start RabbitMQ"]);
    assert!(begin.elapsed() < SOON);
    broker.restart().await;
    let unknown = timeout(Duration::from_secs(60), publishing).await.unwrap().unwrap();
    let arrived = Consumer::connect(&broker.url()).await.drain(&queue).await;
    let distinct: HashSet<String> = arrived.iter().cloned().collect();
    assert_eq!(distinct, ids(&all).into_iter().collect());
    assert!(
        arrived.len() - distinct.len() <= unknown,
        "duplicates come only from unknown outcomes"
    );
    assert!(
        (1..=500).contains(&unknown),
        "only unconfirmed messages are unknown: {unknown}"
    );
    sink.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_hangs_is_given_up() {
    let broker = RabbitMq::start().await;
    let consumer = Consumer::connect(&broker.url()).await;
    let queue = consumer.queue(&[]).await;
    let mut config = to_queues(&broker.url());
    config.confirm_timeout = Duration::from_secs(2);
    let sink = sink(config);
    all_delivered(&sink.publish(&batch([&queue])).await);
    broker.pause();
    let outcome = sink.publish(&batch([&queue])).await.remove(0);
    assert!(
        matches!(&outcome, Outcome::Unknown(reason) if reason.text().contains("no answer")),
        "{outcome:?}"
    );
    let begin = Instant::now();
    down(&sink.publish(&batch([&queue])).await[0], &["cannot connect"]);
    assert!(begin.elapsed() < SOON);
    assert_eq!(sink.check().await.unwrap_err().kind(), ErrorKind::Unreachable);
    broker.resume();
    all_delivered(&sink.publish(&batch([&queue])).await);
    sink.close().await;
    let threads = || {
        std::fs::read_dir("/proc/self/task").unwrap().filter(|task| {
            let name = task.as_ref().unwrap().path().join("comm");
            std::fs::read_to_string(name).is_ok_and(|name| name.contains("lapin"))
        })
    };
    // One connection is the consumer's. Abandoned connections need a moment to close.
    let begin = Instant::now();
    while threads().count() > 1 {
        assert!(begin.elapsed() < SOON, "connections must end after close()");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_ended_while_it_was_idle_is_replaced() {
    let mut broker = RabbitMq::start().await;
    let queue = Consumer::connect(&broker.url()).await.queue(&[]).await;
    let sink = sink(to_queues(&broker.url()));
    all_delivered(&sink.publish(&batch([&queue])).await);
    broker.stop().await;
    broker.restart().await;
    all_delivered(&sink.publish(&batch([&queue])).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_needs_the_right_authority_and_the_right_host() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, pem: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        Some(path)
    };
    let tls = |ca_file| TlsConfig {
        ca_file,
        ..TlsConfig::default()
    };
    let (ours, other) = (
        file("ca.pem", authority.pem()),
        file("other.pem", Authority::new().pem()),
    );
    let broker = RabbitMq::start_with(Options::tls(authority.certificate(&["localhost"]))).await;
    let queue = Consumer::connect(&broker.url()).await.queue(&[]).await;
    let publish = async |url: &str, tls: Option<TlsConfig>| {
        let sink = sink(RabbitMqConfig { tls, ..to_queues(url) });
        let begin = Instant::now();
        let outcome = sink.publish(&batch([&queue])).await.remove(0);
        assert!(begin.elapsed() < SOON);
        outcome
    };
    assert_eq!(
        publish(&broker.tls_url(), Some(tls(ours.clone()))).await,
        Outcome::Delivered
    );
    let wrong_host = broker.tls_url().replace("localhost", "127.0.0.1");
    down(
        &publish(&wrong_host, Some(tls(ours.clone()))).await,
        &["host name of the broker's certificate"],
    );
    down(&publish(&broker.tls_url(), Some(tls(other))).await, &["tls.ca_file"]);
    // Without TLS to the TLS port, and the reverse.
    let plain = broker.tls_url().replace("amqps", "amqp");
    down(&publish(&plain, None).await, &["cannot connect"]);
    let encrypted = broker.url().replace("amqp", "amqps");
    down(&publish(&encrypted, Some(tls(ours))).await, &["cannot connect"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_refuses_us_is_down_with_advice_and_without_the_password() {
    let broker = RabbitMq::start().await;
    broker.ctl(&["add_user", "writer", "canary-secret"]).await;
    broker
        .ctl(&["set_permissions", "-p", "/", "writer", "^$", "^allowed", "^$"])
        .await;
    let consumer = Consumer::connect(&broker.url()).await;
    let port = broker.port();
    let refused = async |user: &str, password: &str, vhost: &str, words: &[&str]| {
        let mut config = to_queues(&format!("amqp://{user}@127.0.0.1:{port}/{vhost}"));
        config.password = Some(password.into());
        let sink = sink(config);
        let begin = Instant::now();
        let outcome = sink.publish(&batch(["q"])).await.remove(0);
        assert!(begin.elapsed() < SOON);
        down(&outcome, words);
        let error = sink.check().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        for text in [format!("{outcome:?}"), format!("{error} {error:?}")] {
            assert!(!text.contains("canary"), "{text}");
        }
    };
    refused("writer", "canary-wrong", "", &["ACCESS_REFUSED", "password"]).await;
    refused("writer", "canary-secret", "nowhere", &["nowhere", "add_vhost"]).await;
    // The user may not write to the default exchange.
    refused("writer", "canary-secret", "", &["amq.default", "set_permissions"]).await;

    let queue = consumer.queue(&[]).await;
    for exchange in ["allowed", "forbidden"] {
        let declared = consumer.channel.exchange_declare(
            exchange.into(),
            ExchangeKind::Fanout,
            Default::default(),
            FieldTable::default(),
        );
        declared.await.unwrap();
        consumer.bind(&queue, exchange, "", FieldTable::default()).await;
    }
    let url = format!("amqp://writer:canary-secret@127.0.0.1:{port}");
    let sink = sink(RabbitMqConfig::new(&url, "{topic}").unwrap());
    let messages = batch(["allowed", "forbidden", "allowed"]);
    let outcomes = sink.publish(&messages).await;
    permanent(&outcomes[1], &["forbidden", "set_permissions"]);
    all_delivered(&[outcomes[0].clone(), outcomes[2].clone()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_only_the_broker_finds_too_large_takes_no_neighbour_with_it() {
    let broker = RabbitMq::start_with(Options::lines(["max_message_size = 1000"])).await;
    let consumer = Consumer::connect(&broker.url()).await;
    let queue = consumer.queue(&[]).await;
    let sink = sink(to_queues(&broker.url()));
    let mut messages = batch(vec![&queue; 60]);
    for at in [20, 40] {
        let mut large = message(&queue);
        large.payload = vec![b'x'; 1001].into();
        messages[at] = Arc::new(large);
    }
    for (at, outcome) in sink.publish(&messages).await.iter().enumerate() {
        match at {
            20 | 40 => permanent(outcome, &["1001", "1000", "max_message_size"]),
            _ => assert_eq!(*outcome, Outcome::Delivered, "message {at}"),
        }
    }
}
