//! Workers of the oldest and the newest supported Celery with unusual `broker_transport_options`. All options of a task
//! are tested in `bin/sendoff/tests/e2e_celery.rs`.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::BTreeSet;

use sendoff::Uuid;
use sendoff_celery::Task;
use sendoff_sink_celery::CeleryConfig;
use sendoff_sink_celery::config::{Declare, RedisConfig};
use sendoff_testkit::servers::Redis;

mod worker;
use worker::{Service, Worker};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_celery_finds_tasks_under_keys_of_its_own() {
    finds_tasks_under_other_keys("SENDOFF_TEST_CELERY_NEW").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_celery_finds_tasks_under_keys_of_its_own() {
    finds_tasks_under_other_keys("SENDOFF_TEST_CELERY_OLD").await;
}

fn add(x: i64, y: i64) -> Task {
    Task::new("shop.add").args((x, y)).unwrap()
}

async fn finds_tasks_under_other_keys(python: &str) {
    let redis = Redis::start().await;
    let queue = format!("shop-{}", Uuid::now_v7());
    let service = Service::start(&CeleryConfig {
        url: Some(sendoff_wire::Address::parse(&redis.url()).unwrap()),
        default_queue: queue.clone(),
        declare: Declare::Active,
        redis: RedisConfig {
            global_keyprefix: "shop:".to_owned(),
            sep: "|".to_owned(),
            priority_steps: vec![0, 5],
            ..RedisConfig::default()
        },
        ..CeleryConfig::default()
    });
    // One lane, so that the relay keeps the order.
    let by_priority = [7, 4, 5].map(|priority| add(i64::from(priority), 1000).priority(priority).key("k"));
    let ids = service.emit(by_priority).await;
    assert_eq!(service.drained().await, 0);
    let keys: BTreeSet<String> = {
        let client = redis::Client::open(redis.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap()
    };
    let expected = [
        "QUEUE",
        "QUEUE|5",
        "_kombu.binding.QUEUE",
        "_kombu.binding_permanent.QUEUE",
    ];
    assert_eq!(
        keys,
        expected
            .map(|key| format!("shop:{}", key.replace("QUEUE", &queue)))
            .into()
    );

    let options = r#"{"global_keyprefix": "shop:", "sep": "|", "priority_steps": [0, 5]}"#;
    let settings = [("SHOP_TRANSPORT", options)];
    let mut worker = Worker::start_with(python, &redis.url(), &redis.url(), &queue, &settings);
    for id in ids {
        worker.ran(id).await;
    }
    let order: Vec<i64> = worker
        .journal()
        .iter()
        .map(|line| line["result"].as_i64().unwrap())
        .collect();
    // 5 and 7 share a list, in which 7 was first.
    assert_eq!(order, [1004, 1007, 1005]);

    // Through a binding of the worker.
    let exchange = format!("{queue}.exchange");
    let through = service
        .emit([add(1, 2).exchange(&exchange).routing_key("my.key")])
        .await[0];
    assert_eq!(worker.ran(through).await, 3);
    assert_eq!(service.drained().await, 0);
}
