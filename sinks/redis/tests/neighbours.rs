//! A bad message fails alone: the sink stays up, and other messages are delivered.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap fails the test")]

use std::sync::Arc;

use sendoff::{Outcome, Outgoing, Sink as _};
use sendoff_sink_redis::{Mode, RedisConfig};
use sendoff_testkit::outgoing;
use sendoff_testkit::servers::{Options, Redis, RedisCluster};

mod scene;
use scene::{config, down, message, run, sink};

/// A message above the limit that the tests set.
fn oversize(topic: &str) -> Arc<Outgoing> {
    let mut message = outgoing(topic, vec![b'x'; 3 << 20]);
    message.content_type = Some("application/octet-stream".to_owned());
    message.into()
}

/// Checks that the message was not delivered, and that the sink does not count as down.
#[track_caller]
fn is_its_own(outcome: &Outcome) {
    assert!(
        matches!(
            outcome,
            Outcome::Permanent(_) | Outcome::Temporary(_) | Outcome::Unknown(_)
        ),
        "{outcome:?}"
    );
}

async fn only_these_fail(config: RedisConfig, bad: &[usize]) {
    let sink = sink(config);
    let mut batch: Vec<_> = (0..120).map(|_| message("a")).collect();
    for at in bad {
        batch[*at] = oversize("a");
    }
    for (at, outcome) in sink.publish(&batch).await.iter().enumerate() {
        match bad.contains(&at) {
            true => is_its_own(outcome),
            false => assert_eq!(*outcome, Outcome::Delivered, "{at} of 120, bad are {bad:?}"),
        }
    }
    // A connection that Redis has just closed may still look open: a message sent on it is unknown, and the next
    // attempt opens a new connection.
    let next = sink.publish(&[message("a")]).await;
    if !matches!(next[..], [Outcome::Unknown(_)]) {
        assert_eq!(next, [Outcome::Delivered]);
    }
    assert_eq!(sink.publish(&[message("a")]).await, [Outcome::Delivered]);
}

#[tokio::test]
async fn a_message_that_redis_ends_the_connection_for_harms_no_other() {
    for line in ["proto-max-bulk-len 1mb", "client-query-buffer-limit 1mb"] {
        let redis = Redis::start_with(Options::lines([line])).await;
        for bad in [&[0][..], &[60], &[119], &[3, 60, 61]] {
            only_these_fail(config(&redis), bad).await;
        }
        let list = RedisConfig {
            mode: Mode::List,
            key: "list".parse().unwrap(),
            ..config(&redis)
        };
        only_these_fail(list, &[77]).await;
    }
    let cluster = RedisCluster::start(1).await;
    run::<()>(&cluster.nodes[0], "CONFIG SET proto-max-bulk-len 1mb").await;
    only_these_fail(scene::cluster_config(&cluster.nodes[0]), &[60]).await;
}

#[tokio::test]
async fn batches_at_the_same_time_are_not_harmed_either() {
    let redis = Redis::start_with(Options::lines(["proto-max-bulk-len 1mb"])).await;
    let sink = Arc::new(sink(config(&redis)));
    let publish = |bad: Option<usize>| {
        let sink = Arc::clone(&sink);
        tokio::spawn(async move {
            let mut batch: Vec<_> = (0..100).map(|_| message("a")).collect();
            if let Some(at) = bad {
                batch[at] = oversize("a");
            }
            sink.publish(&batch).await
        })
    };
    for _ in 0..5 {
        let [one, two, three] = [publish(Some(50)), publish(None), publish(Some(99))];
        let (mut one, two, mut three) = (one.await.unwrap(), two.await.unwrap(), three.await.unwrap());
        is_its_own(&one.remove(50));
        is_its_own(&three.remove(99));
        for outcomes in [&one, &two, &three] {
            assert!(
                outcomes.iter().all(|outcome| *outcome == Outcome::Delivered),
                "{outcomes:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_header_above_the_limit_is_refused_before_it_is_sent() {
    let redis = Redis::start_with(Options::lines(["proto-max-bulk-len 1mb"])).await;
    let config = RedisConfig {
        max_message_bytes: 1 << 20,
        ..config(&redis)
    };
    let mut large = (*message("a")).clone();
    large.headers.insert("x-large", "v".repeat((1 << 20) + 1));
    let outcomes = sink(config).publish(&[message("a"), large.into(), message("a")]).await;
    assert!(
        matches!(&outcomes[1], Outcome::Permanent(reason) if reason.text().contains("1048577 bytes")),
        "{outcomes:?}"
    );
    assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Delivered, &Outcome::Delivered));
}

#[tokio::test]
async fn a_name_that_is_not_ours_fails_alone_and_is_down_if_all_have_it() {
    let redis = Redis::start_with(Options::lines([
        "user sendoff on >password ~events:* &events:* +xadd +rpush +publish +ping",
    ]))
    .await;
    for mode in [Mode::Stream, Mode::List, Mode::PubSub] {
        let config = |key: &str| RedisConfig {
            mode,
            key: key.parse().unwrap(),
            ..RedisConfig::new(&format!("redis://sendoff:password@127.0.0.1:{}", redis.port())).unwrap()
        };
        let topic = |name: &str| message(&format!("{name}:{mode:?}"));
        let batch = [topic("events"), topic("others"), topic("events")];
        let outcomes = sink(config("{topic}")).publish(&batch).await;
        assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Delivered, &Outcome::Delivered));
        assert!(
            matches!(&outcomes[1], Outcome::Temporary(reason) if reason.text().contains("NOPERM")),
            "{mode:?}: {outcomes:?}"
        );
        // Every message has this key.
        for outcome in sink(config("others")).publish(&batch).await {
            assert!(down(&outcome).contains("NOPERM"), "{outcome:?}");
        }
    }
}
