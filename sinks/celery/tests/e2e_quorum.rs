//! Quorum queues: a worker cannot delay their tasks, so tasks wait in RabbitMQ until they are due.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};
use sendoff::Uuid;
use sendoff_celery::Task;
use sendoff_sink_celery::CeleryConfig;
use sendoff_sink_celery::config::{Declare, ExchangeType, QueueType};
use sendoff_testkit::servers::{RabbitMq, Redis};
use tokio::time::{Instant, sleep};

mod worker;
use worker::{PATIENCE, Service, Worker};

const NEW: &str = "SENDOFF_TEST_CELERY_NEW";

/// How many levels of the delay queues are checked: up to 2^5 seconds.
const LEVELS: u32 = 5;

fn add(x: i64, y: i64) -> Task {
    Task::new("shop.add").args((x, y)).unwrap()
}

/// How many tasks wait in the queues of native delayed delivery.
async fn waiting(connection: &Connection) -> u32 {
    let mut waiting = 0;
    for level in 0..LEVELS {
        let channel = connection.create_channel().await.unwrap();
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let name = format!("celery_delayed_{level}");
        let queue = channel.queue_declare(name.as_str().into(), passive, FieldTable::default());
        waiting += queue.await.unwrap().message_count();
        channel.close(200, "OK".into()).await.unwrap();
    }
    waiting
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_for_later_wait_in_rabbitmq_and_run_when_they_are_due() {
    // A separate broker: the names of the delay exchanges and queues are the same for all tests.
    let (rabbitmq, redis) = (RabbitMq::start().await, Redis::start().await);
    let queue = format!("shop-{}", Uuid::now_v7());
    let mut worker = Worker::start_with(NEW, &rabbitmq.url(), &redis.url(), &queue, &[("SHOP_QUORUM", "1")]);
    let service = Service::start(&CeleryConfig {
        url: Some(sendoff_wire::Address::parse(&rabbitmq.url()).unwrap()),
        default_queue: queue.clone(),
        default_queue_type: QueueType::Quorum,
        default_exchange_type: ExchangeType::Topic,
        declare: Declare::Active,
        ..CeleryConfig::default()
    });
    // Once the worker runs a task, it has declared the delay queues, too.
    let first = service.emit([add(1, 1)]).await[0];
    assert_eq!(worker.ran(first).await, 2);

    let emitted_at = SystemTime::now();
    let due = [Duration::from_secs(15), Duration::from_secs(16)];
    let later = service
        .emit([add(2, 2).countdown(due[0]), add(3, 3).eta(emitted_at + due[1])])
        .await;
    let soon = service.emit([add(4, 4)]).await[0];
    let connection = Connection::connect(&rabbitmq.url(), ConnectionProperties::default())
        .await
        .unwrap();
    let began = Instant::now();
    while waiting(&connection).await < 2 {
        assert!(began.elapsed() < PATIENCE, "the tasks must wait in RabbitMQ");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(worker.ran(soon).await, 8);

    for ((id, due), result) in later.into_iter().zip(due).zip([4, 6]) {
        assert_eq!(worker.ran(id).await, result);
        let line = worker.line("it", |line| line["id"] == id.to_string()).await;
        let after = line["at"].as_f64().unwrap() - emitted_at.duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        // RabbitMQ delays by whole seconds; a worker may wait for the rest.
        assert!(after >= due.as_secs_f64() - 1.2, "it ran after {after} s");
    }
    assert_eq!(service.drained().await, 0, "no task may be dead");
    assert_eq!(waiting(&connection).await, 0);
}
