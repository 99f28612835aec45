//! Tasks with a distant eta stay in the outbox instead of waiting in a worker.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod capture;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sendoff::store::{Filter, OperateStore as _, RelayStore as _};
use sendoff::{Headers, Message, Uuid};
use sendoff_celery::{CONTENT_TYPE, Task};
use sendoff_sink_celery::{CeleryConfig, CelerySink, Encoder, TaskCall, TaskOutbox};
use sendoff_testkit::MemoryStore;
use sendoff_testkit::servers::Redis;
use tokio::time::{Instant, sleep};
use worker::Service;

fn config(redis: &Redis, hold: Duration) -> CeleryConfig {
    CeleryConfig {
        url: Some(sendoff_wire::Address::parse(&redis.url()).unwrap()),
        hold_eta: Some(hold),
        ..CeleryConfig::default()
    }
}

/// The task ids in the list of the default queue.
async fn arrived(redis: &Redis) -> Vec<String> {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let range = redis::cmd("LRANGE").arg("celery").arg(0).arg(-1).to_owned();
    let tasks: Vec<String> = range.query_async(&mut connection).await.unwrap();
    let id = |task: &String| {
        let task: serde_json::Value = serde_json::from_str(task).unwrap();
        task["headers"]["id"].as_str().unwrap().to_owned()
    };
    tasks.iter().map(id).collect()
}

#[test]
fn a_task_is_held_until_so_long_before_its_eta() {
    let encoder = |toml: &str| Encoder::new(&toml::from_str(toml).unwrap()).unwrap();
    let emitted: Timestamp = "2026-11-15T19:00:00Z".parse().unwrap();
    let hold = |encoder: &Encoder, options: &str, after: i64| {
        let payload = format!(r#"{{"options": {options}}}"#);
        let message = capture::stored(Uuid::nil(), "shop.add", payload, Headers::new());
        let call = TaskCall::from_delivery(&capture::outgoing(&message, emitted)).unwrap();
        encoder.hold(&call, emitted + SignedDuration::from_secs(after)).unwrap()
    };
    let holding = encoder("hold_eta = \"30s\"");
    for (options, after, seconds) in [
        (r#"{"countdown": 90}"#, 0, Some(60)),
        (r#"{"countdown": 90}"#, 50, Some(10)),
        (r#"{"countdown": 90}"#, 60, None),
        (r#"{"countdown": 90}"#, 500, None),
        (r#"{"countdown": 30.5}"#, 0, None),
        (r#"{"eta": "2026-11-15T20:00:00+00:00"}"#, 0, Some(3570)),
        (r#"{"eta": "9999-01-01T00:00:00"}"#, 0, Some(24 * 3600)),
        ("{}", 0, None),
    ] {
        let expected = seconds.map(Duration::from_secs);
        assert_eq!(hold(&holding, options, after), expected, "{options} after {after} s");
        assert_eq!(hold(&encoder(""), options, after), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_task_of_any_producer_comes_in_time_and_no_attempt_is_charged() {
    let redis = Redis::start().await;
    let service = Service::start(&config(&redis, Duration::from_secs(2)));
    let began = Instant::now();
    // As another program would write it, with a single attempt.
    let payload = r#"{"args": [1, 2], "options": {"countdown": 5}}"#;
    let late = Message::bytes("shop.add", CONTENT_TYPE, payload)
        .max_attempts(1)
        .key("k");
    let soon = Task::new("shop.add").countdown(Duration::from_secs(1)).key("k").into();
    let ids = service.emit([late, soon]).await;
    let (late, soon) = (ids[0].to_string(), ids[1].to_string());
    while arrived(&redis).await != [soon.clone()] {
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", arrived(&redis).await);
        sleep(Duration::from_millis(20)).await;
    }
    // What has arrived may not be settled yet.
    let mut held = service.store.list(&Filter::default(), 10).await.unwrap().messages;
    while held.len() > 1 && began.elapsed() < Duration::from_secs(3) {
        sleep(Duration::from_millis(20)).await;
        held = service.store.list(&Filter::default(), 10).await.unwrap().messages;
    }
    assert_eq!((held.len(), held[0].attempts), (1, 0), "{held:?}");
    assert!(held[0].last_error.as_ref().unwrap().contains("hold_eta"), "{held:?}");
    assert_eq!(service.drained().await, 0);
    assert_eq!(arrived(&redis).await, [late, soon]);
    let waited = began.elapsed();
    assert!(waited > Duration::from_millis(1900), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_no_outbox_is_not_held() {
    let (redis, store) = (Redis::start().await, MemoryStore::new());
    let sink = Arc::new(CelerySink::new(&config(&redis, Duration::ZERO)).unwrap());
    let outbox = TaskOutbox::new(store.outbox().clone(), sink)
        .exclude(["shop.*"])
        .unwrap();
    let mut tx = store.transaction().await.unwrap();
    let task = Task::new("shop.add").countdown(Duration::from_secs(3600));
    let id = outbox.emit(&mut tx, task).await.unwrap();
    assert_eq!(arrived(&redis).await, [id.to_string()]);
    assert_eq!(store.backlog().await.unwrap().waiting, 0);
}
