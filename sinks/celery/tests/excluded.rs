//! Excluded tasks are sent directly to the broker; all others only with their transaction.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;

use sendoff::store::{EmitTransaction as _, OperateStore as _, RelayStore as _};
use sendoff::{Context, ErrorKind, Headers, Outbox};
use sendoff_celery::Task;
use sendoff_sink_celery::{CeleryConfig, CelerySink, TaskOutbox};
use sendoff_testkit::MemoryStore;
use sendoff_testkit::servers::Redis;
use serde_json::Value;

fn outbox(store: &MemoryStore, redis: &Redis) -> TaskOutbox {
    outbox_of(store.outbox().clone(), redis)
}

fn outbox_of(outbox: Outbox, redis: &Redis) -> TaskOutbox {
    let config = CeleryConfig {
        url: Some(sendoff_wire::Address::parse(&redis.url()).unwrap()),
        ..CeleryConfig::default()
    };
    let sink = Arc::new(CelerySink::new(&config).unwrap());
    let outbox = TaskOutbox::new(outbox, sink);
    outbox.exclude(["shop.health.*", "shop.warm"]).unwrap()
}

async fn sent(redis: &Redis) -> Vec<Value> {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let tasks: Vec<String> = redis::cmd("LRANGE")
        .arg("celery")
        .arg(0)
        .arg(-1)
        .query_async(&mut connection)
        .await
        .unwrap();
    tasks.iter().map(|task| serde_json::from_str(task).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_excluded_task_is_sent_at_once_even_if_the_transaction_is_rolled_back() {
    let (redis, store) = (Redis::start().await, MemoryStore::new());
    let outbox = outbox(&store, &redis);
    let mut tx = store.transaction().await.unwrap();
    let kept = Task::new("shop.charge").args([1]).unwrap();
    outbox.emit(&mut tx, kept).await.unwrap();
    let id = outbox
        .emit(&mut tx, Task::new("shop.health.ping").args([2]).unwrap())
        .await
        .unwrap();
    let tasks = sent(&redis).await;
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0]["headers"]["task"], "shop.health.ping");
    assert_eq!(tasks[0]["headers"]["id"], id.to_string());
    drop(tx);
    assert_eq!(store.backlog().await.unwrap().ready, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_task_is_only_in_the_transaction() {
    let (redis, store) = (Redis::start().await, MemoryStore::new());
    let outbox = outbox(&store, &redis);
    assert!(outbox.is_excluded("shop.warm") && !outbox.is_excluded("shop.warmer"));
    let mut tx = store.transaction().await.unwrap();
    let id = outbox.emit(&mut tx, Task::new("shop.charge")).await.unwrap();
    Box::new(tx).commit().await.unwrap();
    assert!(sent(&redis).await.is_empty());
    assert_eq!(store.find(id).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_excluded_task_that_cannot_be_sent_is_an_error() {
    let (mut redis, store) = (Redis::start().await, MemoryStore::new());
    let outbox = outbox(&store, &redis);
    let mut tx = store.transaction().await.unwrap();
    redis.kill();
    let error = outbox.emit(&mut tx, Task::new("shop.warm")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("shop.warm"), "{error}");
}

struct Tenant;

impl Context for Tenant {
    fn capture(&self, headers: &mut Headers) {
        headers.insert("x-tenant", "acme");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_excluded_task_tells_where_the_caller_is_as_an_emitted_one_does() {
    let (redis, store) = (Redis::start().await, MemoryStore::new());
    let outbox = outbox_of(Outbox::builder().context(Tenant).build(), &redis);
    let mut tx = store.transaction().await.unwrap();
    let own = Task::new("shop.warm").header("x-tenant", "own");
    for task in [Task::new("shop.warm"), own] {
        outbox.emit(&mut tx, task).await.unwrap();
    }
    let tenants: Vec<Value> = sent(&redis)
        .await
        .iter()
        .map(|task| task["headers"]["x-tenant"].clone())
        .collect();
    assert_eq!(tenants, ["own", "acme"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_emitted_and_its_excluded_members_are_sent() {
    let (redis, store) = (Redis::start().await, MemoryStore::new());
    let outbox = outbox(&store, &redis);
    let names = ["shop.charge", "shop.warm", "shop.health.ping", "shop.mail"];
    let group = Task::group(names.map(Task::new));
    let expected: Vec<_> = group.iter().map(Task::id).collect();
    let mut tx = store.transaction().await.unwrap();
    let ids = outbox.emit_many(&mut tx, group).await.unwrap();
    Box::new(tx).commit().await.unwrap();
    assert_eq!(ids, expected);
    let tasks = sent(&redis).await;
    let headers = |at: usize| &tasks[at]["headers"];
    assert_eq!(
        (tasks.len(), &headers(1)["task"], &headers(0)["task"]),
        (2, &"shop.warm".into(), &"shop.health.ping".into())
    );
    assert_eq!(
        (&headers(1)["group_index"], &headers(0)["group_index"]),
        (&1.into(), &2.into())
    );
    assert_eq!(headers(0)["group"], headers(1)["group"]);
    assert_eq!(store.backlog().await.unwrap().ready, 2);
    assert_eq!(store.find(ids[3]).await.unwrap()[0].topic, "shop.mail");
    let mut tx = store.transaction().await.unwrap();
    assert!(outbox.emit_many(&mut tx, []).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_the_one_that_cannot_be_sent_is_named() {
    let (redis, store) = (Redis::start().await, MemoryStore::new());
    let outbox = outbox(&store, &redis);
    let mut tx = store.transaction().await.unwrap();
    let bad = Task::new("shop.health.bad").exchange("nowhere").routing_key("x");
    let error = outbox
        .emit_many(&mut tx, [Task::new("shop.warm"), bad])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("shop.health.bad"), "{error}");
}
