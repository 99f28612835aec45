//! Features of Redis: refusals, channels, databases, and lengths of streams.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

use std::time::Duration;

use sendoff::{ErrorKind, Outcome, Sink};
use sendoff_sink_redis::{Mode, NoReceivers, RedisConfig};
use sendoff_testkit::servers::{Options, Redis, RedisCluster};
use tokio::time::Instant;

mod scene;
use scene::{config, down, message, publish_one, run, sink};

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
    // A refused login is not tried again.
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
async fn the_rights_that_are_documented_are_enough() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sinks/redis.md")).unwrap();
    let line = page.lines().find(|line| line.starts_with("ACL SETUSER")).unwrap();
    let (cluster, redis) = (RedisCluster::start(1).await, Redis::start().await);
    for (mode, line) in [
        (Mode::Stream, line.to_owned()),
        (Mode::List, line.replace("+xadd", "+rpush")),
        (Mode::PubSub, line.replace("+xadd", "+publish &events:*")),
    ] {
        for (redis, more) in [(&redis, ""), (&cluster.nodes[0], " +cluster|slots")] {
            run::<()>(redis, "ACL DELUSER sendoff").await;
            run::<()>(redis, &format!("{line}{more}")).await;
            let mut config = RedisConfig::new(&format!("redis://sendoff:password@127.0.0.1:{}", redis.port())).unwrap();
            (config.mode, config.cluster) = (mode, !more.is_empty());
            config.key = "events:{topic}".parse().unwrap();
            let sink = sink(config);
            sink.check().await.unwrap();
            let topic = format!("{mode:?}");
            assert_eq!(publish_one(&sink, &topic).await, Outcome::Delivered, "{mode:?}{more}");
        }
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
