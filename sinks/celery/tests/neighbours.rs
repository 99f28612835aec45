//! A bad task fails alone: the sink stays up, and other tasks are delivered.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;

use sendoff::{Outcome, Outgoing, Sink as _};
use sendoff_celery::CONTENT_TYPE;
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_testkit::outgoing;
use sendoff_testkit::servers::{Options, Redis};
use sendoff_wire::Address;

fn task(payload: String) -> Arc<Outgoing> {
    let mut task = outgoing("demo.add", payload);
    task.content_type = Some(CONTENT_TYPE.to_owned());
    task.into()
}

fn tasks(count: usize) -> Vec<Arc<Outgoing>> {
    (0..count).map(|n| task(format!(r#"{{"args":[{n}]}}"#))).collect()
}

fn sink(url: &str) -> CelerySink {
    let config = CeleryConfig {
        url: Some(Address::parse(url).unwrap()),
        declare: Declare::Off,
        ..CeleryConfig::default()
    };
    CelerySink::new(&config).unwrap()
}

#[tokio::test]
async fn a_task_that_redis_ends_the_connection_for_harms_no_other() {
    for line in ["proto-max-bulk-len 1mb", "client-query-buffer-limit 1mb"] {
        let redis = Redis::start_with(Options::lines([line])).await;
        let sink = sink(&redis.url());
        let large = task(format!(r#"{{"args":["{}"]}}"#, "x".repeat(3 << 20)));
        for at in [0, 123, 299] {
            let mut batch = tasks(300);
            batch[at] = Arc::clone(&large);
            let mut outcomes = sink.publish(&batch).await;
            let own = outcomes.remove(at);
            assert_eq!(outcomes, vec![Outcome::Delivered; 299], "{line}, with {own:?}");
            assert!(matches!(own, Outcome::Permanent(_) | Outcome::Unknown(_)), "{own:?}");
        }
    }
}

#[tokio::test]
async fn a_queue_that_is_not_ours_fails_alone() {
    let redis = Redis::start_with(Options::lines(["user sendoff on >password ~celery* +lpush +ping"])).await;
    let sink = sink(&format!("redis://sendoff:password@127.0.0.1:{}", redis.port()));
    let mut batch = tasks(300);
    batch[7] = task(r#"{"args":[7],"options":{"queue":"others"}}"#.to_owned());
    let mut outcomes = sink.publish(&batch).await;
    let own = outcomes.remove(7);
    assert_eq!(outcomes, vec![Outcome::Delivered; 299], "with {own:?}");
    assert!(
        matches!(&own, Outcome::Temporary(reason) if reason.text().contains("NOPERM")),
        "{own:?}"
    );
}
