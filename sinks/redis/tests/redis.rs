//! What is special to Redis: its refusals, channels, clusters, TLS, and lengths of streams.
#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test that is how it fails")]

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use sendoff::{Delivery, ErrorKind, Outcome, Sink};
use sendoff_sink_redis::{Mode, NoReceivers, RedisConfig, RedisSink};
use sendoff_testkit::delivery;
use sendoff_testkit::servers::{Authority, Certificate, Options, Redis};
use sendoff_wire::TlsConfig;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

fn message(topic: &str) -> Arc<Delivery> {
    Arc::new(delivery(topic, r#"{"card":"canary"}"#))
}

fn config(redis: &Redis) -> RedisConfig {
    RedisConfig::new(&redis.url()).unwrap()
}

fn sink(config: RedisConfig) -> RedisSink {
    RedisSink::new(config).unwrap()
}

async fn connect(redis: &Redis) -> MultiplexedConnection {
    let client = redis::Client::open(redis.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn run<T: redis::FromRedisValue>(redis: &Redis, words: &str) -> T {
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query_async(&mut connect(redis).await).await.unwrap()
}

/// The words of an outcome that must be this, and must not tell what is in the message.
fn down(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::SinkDown(reason) if !reason.text().contains("canary") => reason.text(),
        other => panic!("not down, or talkative: {other:?}"),
    }
}

async fn publish_one(sink: &RedisSink, topic: &str) -> Outcome {
    sink.publish(&[message(topic)]).await.remove(0)
}

#[tokio::test]
async fn a_key_of_another_type_makes_one_message_permanent() {
    let redis = Redis::start().await;
    run::<()>(&redis, "SET taken text").await;
    let sink = sink(config(&redis));
    let outcomes = sink.publish(&[message("a"), message("taken"), message("b")]).await;
    assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Delivered, &Outcome::Delivered));
    assert!(
        matches!(&outcomes[1], Outcome::Permanent(reason) if reason.text().contains("WRONGTYPE")),
        "{outcomes:?}"
    );
    assert_eq!(run::<u64>(&redis, "XLEN b").await, 1);
}

#[tokio::test]
async fn a_full_redis_is_down_until_there_is_room() {
    let redis = Redis::start().await;
    let sink = sink(config(&redis));
    assert_eq!(publish_one(&sink, "a").await, Outcome::Delivered);
    run::<()>(&redis, "CONFIG SET maxmemory 1").await;
    assert!(down(&publish_one(&sink, "a").await).contains("maxmemory"));
    run::<()>(&redis, "CONFIG SET maxmemory 0").await;
    assert_eq!(publish_one(&sink, "a").await, Outcome::Delivered);
    assert_eq!(run::<u64>(&redis, "XLEN a").await, 2);
}

#[tokio::test]
async fn a_replica_is_down() {
    let redis = Redis::start().await;
    run::<()>(&redis, "REPLICAOF 127.0.0.1 1").await;
    let outcome = publish_one(&sink(config(&redis)), "a").await;
    assert!(down(&outcome).contains("primary"), "{outcome:?}");
}

#[tokio::test]
async fn a_missing_or_wrong_password_is_down_with_advice() {
    let redis = Redis::start_with(Options::lines(["requirepass right"])).await;
    let mut config = config(&redis);
    let without = sink(config.clone());
    let outcome = publish_one(&without, "a").await;
    assert!(down(&outcome).contains("password"), "{outcome:?}");
    assert_eq!(without.check().await.unwrap_err().kind(), ErrorKind::Denied);

    config.password = Some("hunter2".into());
    let began = Instant::now();
    let outcome = publish_one(&sink(config.clone()), "a").await;
    assert!(
        down(&outcome).contains("password") && !down(&outcome).contains("hunter2"),
        "{outcome:?}"
    );
    // What refuses us is not tried again and again.
    assert!(began.elapsed() < Duration::from_secs(2));

    config.password = Some("right".into());
    let sink = sink(config);
    sink.check().await.unwrap();
    assert_eq!(publish_one(&sink, "a").await, Outcome::Delivered);
}

#[tokio::test]
async fn a_user_without_the_right_to_write_is_down_with_advice() {
    let redis = Redis::start_with(Options::lines(["user reader on >secret ~* +@read +ping +client"])).await;
    let url = format!("redis://reader:secret@127.0.0.1:{}", redis.port());
    let sink = sink(RedisConfig::new(&url).unwrap());
    let outcome = publish_one(&sink, "a").await;
    assert!(down(&outcome).contains("ACL"), "{outcome:?}");
    sink.check().await.unwrap();
}

#[tokio::test]
async fn a_node_of_a_cluster_asks_for_cluster_mode() {
    let redis = Redis::start_with(Options::lines(["cluster-enabled yes"])).await;
    // Of the two slots one is here, and the other nowhere.
    let slot: u16 = run(&redis, "CLUSTER KEYSLOT here").await;
    run::<()>(&redis, &format!("CLUSTER ADDSLOTS {slot}")).await;
    let outcome = publish_one(&sink(config(&redis)), "elsewhere").await;
    assert!(down(&outcome).contains("CLUSTER"), "{outcome:?}");
}

#[tokio::test]
async fn a_cluster_of_one_node_takes_messages_for_all_slots() {
    let redis = Redis::start_with(Options::lines(["cluster-enabled yes"])).await;
    run::<()>(&redis, "CLUSTER ADDSLOTSRANGE 0 16383").await;
    let began = Instant::now();
    while !run::<String>(&redis, "CLUSTER INFO").await.contains("cluster_state:ok") {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the cluster does not come up"
        );
        sleep(Duration::from_millis(20)).await;
    }
    let mut config = config(&redis);
    config.cluster = true;
    let sink = sink(config);
    sink.check().await.unwrap();
    run::<()>(&redis, "SET taken text").await;
    let mut batch: Vec<_> = (0..50).map(|n| message(&format!("topic.{n}"))).collect();
    batch[7] = message("taken");
    let outcomes = sink.publish(&batch).await;
    for (at, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Outcome::Delivered => assert_ne!(at, 7),
            Outcome::Permanent(_) => assert_eq!(at, 7),
            other => panic!("{at}: {other:?}"),
        }
    }
    assert_eq!(run::<u64>(&redis, "DBSIZE").await, 50);
    sink.close().await;
}

#[tokio::test]
async fn a_dead_cluster_is_down_soon_and_found_again() {
    let mut redis = Redis::start_with(Options::lines(["cluster-enabled yes"])).await;
    run::<()>(&redis, "CLUSTER ADDSLOTSRANGE 0 16383").await;
    let mut config = config(&redis);
    config.cluster = true;
    let sink = sink(config);
    let began = Instant::now();
    while publish_one(&sink, "a").await != Outcome::Delivered {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the cluster does not come up"
        );
        sleep(Duration::from_millis(50)).await;
    }
    redis.kill();
    for _ in 0..3 {
        let began = Instant::now();
        let outcome = publish_one(&sink, "a").await;
        assert!(
            matches!(outcome, Outcome::SinkDown(_) | Outcome::Unknown(_)),
            "{outcome:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    }
    redis.restart().await;
    let began = Instant::now();
    while publish_one(&sink, "a").await != Outcome::Delivered {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "the cluster is not found again"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_channel_without_listeners_is_as_the_settings_say() {
    let redis = Redis::start().await;
    let mut config = config(&redis);
    config.mode = Mode::PubSub;
    assert_eq!(publish_one(&sink(config.clone()), "a").await, Outcome::Delivered);
    config.no_receivers = NoReceivers::Retry;
    let sink = sink(config);
    assert!(matches!(publish_one(&sink, "a").await, Outcome::Temporary(_)));

    let client = redis::Client::open(redis.url()).unwrap();
    let mut listener = client.get_async_pubsub().await.unwrap();
    listener.subscribe("a").await.unwrap();
    let sent = message("a");
    assert_eq!(sink.publish(std::slice::from_ref(&sent)).await, [Outcome::Delivered]);
    let heard = futures::StreamExt::next(&mut listener.on_message()).await.unwrap();
    let envelope: serde_json::Value = serde_json::from_slice(heard.get_payload_bytes()).unwrap();
    assert_eq!(envelope["id"], sent.id.to_string());
}

#[tokio::test]
async fn a_stream_stays_as_long_as_it_may_be() {
    let redis = Redis::start().await;
    let mut config = config(&redis);
    config.max_len = Some(10);
    config.exact = true;
    let batch: Vec<_> = (0..50).map(|_| message("a")).collect();
    assert_eq!(sink(config).publish(&batch).await, vec![Outcome::Delivered; 50]);
    assert_eq!(run::<u64>(&redis, "XLEN a").await, 10);
}

#[tokio::test]
async fn a_database_by_number_is_used() {
    let redis = Redis::start().await;
    let sink = sink(RedisConfig::new(&format!("{}/3", redis.url())).unwrap());
    assert_eq!(publish_one(&sink, "a").await, Outcome::Delivered);
    assert!(run::<String>(&redis, "INFO keyspace").await.contains("db3:keys=1"));
}

#[tokio::test]
async fn a_frozen_redis_leaves_messages_unknown_and_is_left() {
    let redis = Redis::start().await;
    let mut config = config(&redis);
    config.answer_timeout = Duration::from_millis(300);
    let sink = sink(config);
    assert_eq!(publish_one(&sink, "a").await, Outcome::Delivered);
    redis.pause();
    assert!(matches!(publish_one(&sink, "a").await, Outcome::Unknown(_)));
    redis.resume();
    assert_eq!(publish_one(&sink, "a").await, Outcome::Delivered);
}

/// A folder with the authority's certificate, and settings that trust it.
fn trusting(certificate: &Certificate) -> (TempDir, TlsConfig) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, &certificate.ca_pem).unwrap();
    let tls = TlsConfig {
        ca_file: Some(file),
        ..TlsConfig::default()
    };
    (folder, tls)
}

async fn tls_outcome(hosts: &[&str], trusted: Option<&Certificate>, cluster: bool) -> Outcome {
    let certificate = Authority::new().certificate(hosts);
    let (_folder, tls) = trusting(trusted.unwrap_or(&certificate));
    let redis = Redis::start_with(Options::tls(certificate)).await;
    let mut config = RedisConfig::new(&redis.tls_url()).unwrap();
    config.tls = Some(tls);
    config.cluster = cluster;
    publish_one(&sink(config), "a").await
}

#[tokio::test]
async fn a_server_that_proves_its_name_is_trusted() {
    assert_eq!(tls_outcome(&["localhost"], None, false).await, Outcome::Delivered);
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let outcome = tls_outcome(&["elsewhere.example"], None, false).await;
    assert!(down(&outcome).contains("certificate"), "{outcome:?}");
    let outcome = tls_outcome(&["elsewhere.example"], None, true).await;
    down(&outcome);
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let stranger = Authority::new().certificate(&["localhost"]);
    let outcome = tls_outcome(&["localhost"], Some(&stranger), false).await;
    assert!(down(&outcome).contains("certificate"), "{outcome:?}");
}
