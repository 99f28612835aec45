//! Messages, sinks, and commands for the server.
#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use sendoff::{Outcome, Outgoing, Sink as _};
use sendoff_sink_redis::{RedisConfig, RedisSink};
use sendoff_testkit::outgoing;
use sendoff_testkit::servers::Redis;
use tokio::time::{Instant, sleep};

pub(crate) fn message(topic: &str) -> Arc<Outgoing> {
    Arc::new(outgoing(topic, r#"{"card":"canary"}"#))
}

pub(crate) fn config(redis: &Redis) -> RedisConfig {
    RedisConfig::new(&redis.url()).unwrap()
}

/// Settings for a node of a cluster.
pub(crate) fn cluster_config(redis: &Redis) -> RedisConfig {
    RedisConfig {
        cluster: true,
        ..config(redis)
    }
}

pub(crate) fn sink(config: RedisConfig) -> RedisSink {
    RedisSink::new(config).unwrap()
}

async fn connect(redis: &Redis) -> MultiplexedConnection {
    let client = redis::Client::open(redis.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// Runs a command; its arguments must not contain spaces.
pub(crate) async fn run<T: redis::FromRedisValue>(redis: &Redis, words: &str) -> T {
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query_async(&mut connect(redis).await).await.unwrap()
}

/// The text of an outcome, which must be "down" and must not show the payload.
#[track_caller]
pub(crate) fn down(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::SinkDown(reason) if !reason.text().contains("canary") => reason.text(),
        other => panic!("not down, or the payload is shown: {other:?}"),
    }
}

pub(crate) async fn publish_one(sink: &RedisSink, topic: &str) -> Outcome {
    sink.publish(&[message(topic)]).await.remove(0)
}

/// Publishes messages of this topic until one is delivered.
pub(crate) async fn until_delivered(sink: &RedisSink, topic: &str) {
    let began = Instant::now();
    loop {
        let outcome = publish_one(sink, topic).await;
        if outcome == Outcome::Delivered {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{outcome:?}");
        sleep(Duration::from_millis(50)).await;
    }
}
