//! Failover: another server takes over behind the same name.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

use sendoff::{Outcome, Sink as _};
use sendoff_sink_redis::RedisConfig;
use sendoff_testkit::FaultProxy;
use sendoff_testkit::servers::{Options, Redis};

mod scene;
use scene::{config, down, publish_one, run, sink};

#[tokio::test]
async fn a_replica_is_down_until_it_is_a_primary() {
    let redis = Redis::start().await;
    run::<()>(&redis, "REPLICAOF 127.0.0.1 1").await;
    let sink = sink(config(&redis));
    for _ in 0..2 {
        let outcome = publish_one(&sink, "a").await;
        assert!(down(&outcome).contains("primary"), "{outcome:?}");
    }
    run::<()>(&redis, "REPLICAOF NO ONE").await;
    assert_eq!(publish_one(&sink, "a").await, Outcome::Delivered);
}

#[tokio::test]
async fn the_server_that_took_over_behind_the_same_name_is_found() {
    for (lines, code) in [
        (vec![], "READONLY"),
        // A writable replica that refuses commands while it is not in sync with its primary.
        (
            vec!["replica-read-only no", "replica-serve-stale-data no"],
            "MASTERDOWN",
        ),
    ] {
        let (before, after) = (Redis::start_with(Options::lines(lines)).await, Redis::start().await);
        let name = FaultProxy::start(before.port()).await;
        let sink = sink(RedisConfig::new(&name.url(&before.url(), before.port())).unwrap());
        assert_eq!(publish_one(&sink, "a").await, Outcome::Delivered);

        run::<()>(&before, "REPLICAOF 127.0.0.1 1").await;
        let outcome = publish_one(&sink, "a").await;
        assert!(down(&outcome).contains(code), "{outcome:?}");
        name.lead_to(after.port());
        let outcome = publish_one(&sink, "a").await;
        assert_eq!(outcome, Outcome::Delivered, "after {code}");
        assert_eq!(run::<u64>(&after, "XLEN a").await, 1);
        sink.close().await;
    }
}
