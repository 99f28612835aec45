//! Tasks made here, emitted, relayed, and run by workers of the oldest and the newest Celery, on both brokers.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by it")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sendoff::task::{Compression, Serializer};
use sendoff::{Task, Uuid};
use sendoff_sink_celery::CeleryConfig;
use sendoff_sink_celery::config::Declare;
use sendoff_testkit::servers::{RabbitMq, Redis};
use serde_json::{Value, json};

mod worker;
use worker::{Service, Worker};

const OLD: &str = "SENDOFF_TEST_CELERY_OLD";
const NEW: &str = "SENDOFF_TEST_CELERY_NEW";
const PRIORITIES: [u8; 4] = [3, 9, 0, 6];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_celery_runs_tasks_from_redis() {
    let redis = Redis::start().await;
    runs_every_kind_of_task(NEW, &redis.url(), &redis.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_celery_runs_tasks_from_redis() {
    let redis = Redis::start().await;
    runs_every_kind_of_task(OLD, &redis.url(), &redis.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_celery_runs_tasks_from_rabbitmq() {
    let redis = Redis::start().await;
    runs_every_kind_of_task(NEW, RabbitMq::shared().url(), &redis.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_celery_runs_tasks_from_rabbitmq() {
    let redis = Redis::start().await;
    runs_every_kind_of_task(OLD, RabbitMq::shared().url(), &redis.url()).await;
}

fn add(x: i64, y: i64) -> Task {
    Task::new("shop.add").args((x, y)).unwrap()
}

async fn runs_every_kind_of_task(python: &str, broker: &str, backend: &str) {
    let queue = format!("shop-{}", Uuid::now_v7());
    let on_rabbitmq = broker.starts_with("amqp");
    let service = Service::start(&CeleryConfig {
        url: Some(sendoff_wire::Address::parse(broker).unwrap()),
        default_queue: queue.clone(),
        queue_max_priority: on_rabbitmq.then_some(10),
        declare: Declare::Active,
        ..CeleryConfig::default()
    });

    // What lies in the queue before there is a worker: the order is the broker's choice, and time passes.
    let urgent = PRIORITIES.map(|priority| add(i64::from(priority), 1000).priority(priority));
    let urgent = service.emit(urgent).await;
    let expired = service.emit([add(1, 1).expires_in(Duration::from_millis(1))]).await[0];
    assert_eq!(service.drained().await, 0);
    let mut worker = Worker::start(python, broker, backend, &queue);
    // From here on it takes tasks as they come.
    for id in urgent {
        worker.ran(id).await;
    }

    let emitted_at = SystemTime::now();
    let mut ids = service
        .emit([
            add(2, 3),
            Task::new("shop.echo")
                .args(("ä", 1.5, [1, 2]))
                .unwrap()
                .kwargs(json!({"k": {"n": null}}))
                .unwrap(),
            add(4, 4).countdown(Duration::from_secs(2)),
            add(5, 5).eta(emitted_at + Duration::from_secs(2)),
            add(6, 6).expires_in(Duration::from_secs(600)),
            Task::new("shop.echo")
                .time_limit(Duration::from_secs(60))
                .soft_time_limit(Duration::from_secs(50)),
            Task::new("shop.echo")
                .args(["yes", "1e3", "~"])
                .unwrap()
                .serializer(Serializer::Yaml),
            Task::new("shop.echo")
                .args(["z".repeat(5000)])
                .unwrap()
                .compression(Compression::Gzip),
        ])
        .await
        .into_iter();
    let mut next = || ids.next().unwrap();
    assert_eq!(worker.ran(next()).await, 5);
    assert_eq!(
        worker.ran(next()).await,
        json!([["ä", 1.5, [1, 2]], {"k": {"n": null}}, [null, null]])
    );
    for result in [8, 10] {
        let id = next();
        assert_eq!(worker.ran(id).await, result);
        let line = worker.line("it", |line| line["id"] == id.to_string()).await;
        let after = line["at"].as_f64().unwrap() - emitted_at.duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        // A worker's timer goes off a few milliseconds early.
        assert!(after >= 1.8, "it ran after {after} s");
    }
    assert_eq!(worker.ran(next()).await, 12);
    assert_eq!(worker.ran(next()).await, json!([[], {}, [60, 50]]));
    assert_eq!(worker.ran(next()).await[0], json!(["yes", "1e3", "~"]));
    assert_eq!(worker.ran(next()).await[0][0].as_str().map(str::len), Some(5000));

    what_comes_after(&service, &mut worker).await;

    let journal = worker.journal();
    let order: Vec<i64> = journal
        .iter()
        .filter_map(|line| line["result"].as_i64())
        .filter(|result| (1000..1010).contains(result))
        .collect();
    // The highest comes first on RabbitMQ, the lowest on Redis.
    let expected = if on_rabbitmq {
        [1009, 1006, 1003, 1000]
    } else {
        [1000, 1003, 1006, 1009]
    };
    assert_eq!(order, expected);
    assert!(
        !journal.iter().any(|line| line["id"] == expired.to_string()),
        "the expired task was run"
    );
    assert_eq!(service.drained().await, 0);
}

/// Chains, groups, chords and links.
async fn what_comes_after(service: &Service, worker: &mut Worker) {
    let plus = |number: i64| Task::new("shop.add").args([number]).unwrap();
    service.emit([add(20, 1).then(plus(100)).then(plus(300))]).await;
    let group = service.emit(Task::group([add(30, 0), add(31, 0), add(32, 0)])).await;
    let total = Task::new("shop.total");
    let chord = Task::chord([add(40, 1), add(40, 2)], total);
    service.emit([chord]).await;
    service.emit([add(50, 1).link(plus(500))]).await;
    let failed = service
        .emit([Task::new("shop.fail").link_error(Task::new("shop.on_error"))])
        .await[0];

    let result =
        |task: &'static str, result: Value| move |line: &Value| line["task"] == task && line["result"] == result;
    worker.line("the chain", result("shop.add", json!(421))).await;
    for (id, expected) in group.into_iter().zip([30, 31, 32]) {
        assert_eq!(worker.ran(id).await, expected);
    }
    worker.line("the chord", result("shop.total", json!(83))).await;
    worker.line("the link", result("shop.add", json!(551))).await;
    let told = json!([failed.to_string(), "as it should"]);
    worker.line("the error", result("shop.on_error", told)).await;
}
