//! Brokers that crash, and missing queues and exchanges: no task is lost, and the reasons are reported.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lapin::options::{BasicGetOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties};
use sendoff::store::{Command, Filter, OperateStore as _, RowRef, Table};
use sendoff::{Outcome, Outgoing, Sink as _, Uuid};
use sendoff_celery::{CONTENT_TYPE, Task};
use sendoff_sink_celery::config::{Declare, ExchangeType, RouteConfig};
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_testkit::servers::{RabbitMq, Redis};
use tokio::time::sleep;

mod worker;
use worker::Service;

fn config(url: &str, queue: &str, declare: Declare) -> CeleryConfig {
    CeleryConfig {
        url: Some(sendoff_wire::Address::parse(url).unwrap()),
        default_queue: queue.to_owned(),
        declare,
        ..CeleryConfig::default()
    }
}

fn name() -> String {
    format!("shop-{}", Uuid::now_v7())
}

fn stored(content_type: &str, payload: &str) -> Arc<Outgoing> {
    Arc::new(Outgoing {
        id: Uuid::now_v7(),
        topic: "shop.add".into(),
        payload: payload.to_owned().into(),
        content_type: Some(content_type.into()),
        created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        ..Outgoing::blank(RowRef {
            table: Table::Ready,
            lane: 0,
            seq: 1,
            sink: None,
            id: sendoff::Uuid::nil().into(),
            locator: 0,
        })
    })
}

fn task(payload: &str) -> Arc<Outgoing> {
    stored(CONTENT_TYPE, payload)
}

fn tasks(count: usize) -> impl Iterator<Item = Task> {
    (0..count).map(|number| Task::new("shop.add").args((number, 1)).unwrap())
}

#[track_caller]
fn permanent(outcome: &Outcome, words: &[&str]) {
    let Outcome::Permanent(reason) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(words.iter().all(|word| reason.text().contains(word)), "{reason:?}");
}

/// A client that manages queues.
struct Operator {
    channel: Channel,
    _connection: Connection,
}

impl Operator {
    async fn connect(url: &str) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
        Self {
            channel: connection.create_channel().await.unwrap(),
            _connection: connection,
        }
    }

    async fn declare(&self, queue: &str) {
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        let declared = self.channel.queue_declare(queue.into(), options, FieldTable::default());
        declared.await.unwrap();
    }

    async fn delete(&self, queue: &str) {
        let deleted = self.channel.queue_delete(queue.into(), QueueDeleteOptions::default());
        deleted.await.unwrap();
    }

    /// The ids of all tasks in a queue.
    async fn drain(&self, queue: &str) -> HashSet<Uuid> {
        let mut ids = HashSet::new();
        let options = BasicGetOptions { no_ack: true };
        while let Some(message) = self.channel.basic_get(queue.into(), options).await.unwrap() {
            let id = message.properties.correlation_id().as_ref().unwrap().as_str().parse();
            ids.insert(id.unwrap());
        }
        ids
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_deleted_under_the_relay_loses_nothing() {
    let (broker, queue) = (RabbitMq::shared(), name());
    let operator = Operator::connect(broker.url()).await;
    operator.declare(&queue).await;
    let service = Service::start(&config(broker.url(), &queue, Declare::Passive));
    let first: HashSet<Uuid> = service.emit(tasks(50)).await.into_iter().collect();
    assert_eq!(service.drained().await, 0);
    assert_eq!(operator.drain(&queue).await, first);

    operator.delete(&queue).await;
    let lost: HashSet<Uuid> = service.emit(tasks(50)).await.into_iter().collect();
    assert_eq!(service.drained().await, 50);
    let dead = service.store.list(&Filter::default(), 100).await.unwrap().messages;
    let errors: Vec<String> = dead.into_iter().filter_map(|row| row.last_error).collect();
    assert_eq!(errors.len(), 50);
    assert!(errors.iter().all(|error| error.contains(&queue)), "{errors:?}");
    assert!(errors.iter().any(|error| error.contains("unroutable")), "{errors:?}");

    operator.declare(&queue).await;
    assert_eq!(
        service
            .store
            .retry_dead(&Filter::default(), None, 100, &mut Command::by("test"))
            .await
            .unwrap(),
        50
    );
    assert_eq!(service.drained().await, 0);
    assert_eq!(operator.drain(&queue).await, lost);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_the_sink_looks_after_is_made_again() {
    let (broker, queue) = (RabbitMq::shared(), name());
    let operator = Operator::connect(broker.url()).await;
    let sink = CelerySink::new(&config(broker.url(), &queue, Declare::Active)).unwrap();
    let batch = [task("{}"), task("{}")];
    assert_eq!(sink.publish(&batch).await, [Outcome::Delivered, Outcome::Delivered]);
    operator.delete(&queue).await;
    assert_eq!(sink.publish(&batch).await, [Outcome::Delivered, Outcome::Delivered]);
    assert_eq!(operator.drain(&queue).await.len(), 2);
    sink.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_exchange_or_queue_is_the_matter_of_its_own_task() {
    let (broker, queue) = (RabbitMq::shared(), name());
    let operator = Operator::connect(broker.url()).await;
    operator.declare(&queue).await;
    for declare in [Declare::Off, Declare::Passive] {
        let sink = CelerySink::new(&config(broker.url(), &queue, declare)).unwrap();
        let batch = [
            task(r#"{"options": {"exchange": "nowhere", "routing_key": "x"}}"#),
            task("{}"),
            task(r#"{"options": {"queue": "no-such-queue"}}"#),
            stored("application/json", "{}"),
            task(r#"{"options": {"coutdown": 1}}"#),
            task("{}"),
        ];
        let outcomes = sink.publish(&batch).await;
        permanent(&outcomes[0], &["nowhere"]);
        assert_eq!(outcomes[1], Outcome::Delivered);
        permanent(&outcomes[2], &["no-such-queue"]);
        permanent(&outcomes[3], &["not a Celery task"]);
        permanent(&outcomes[4], &["coutdown"]);
        assert_eq!(outcomes[5], Outcome::Delivered);
        let expected = HashSet::from([batch[1].id, batch[5].id]);
        assert_eq!(operator.drain(&queue).await, expected, "{declare:?}");
        sink.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rabbitmq_that_is_killed_while_tasks_flow_loses_none() {
    let mut broker = RabbitMq::start().await;
    let queue = name();
    let service = Service::start(&config(&broker.url(), &queue, Declare::Active));
    let mut emitted = HashSet::new();
    for _ in 0..5 {
        emitted.extend(service.emit(tasks(200)).await);
    }
    service.drained().await;
    for _ in 0..10 {
        emitted.extend(service.emit(tasks(500)).await);
    }
    sleep(Duration::from_millis(20)).await;
    broker.kill();
    emitted.extend(service.emit(tasks(200)).await);
    broker.restart().await;
    assert_eq!(service.drained().await, 0);
    let arrived = Operator::connect(&broker.url()).await.drain(&queue).await;
    let lost = emitted.difference(&arrived).count();
    assert_eq!(lost, 0, "of {}", emitted.len());
    assert_eq!(arrived.len(), emitted.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_may_name_several_queues_that_nobody_has_declared() {
    let broker = RabbitMq::shared();
    let sink = CelerySink::new(&config(broker.url(), &name(), Declare::Active)).unwrap();
    let queues = [name(), name(), name(), name()];
    let batch: Vec<Arc<Outgoing>> = (0..12)
        .map(|n| task(&format!(r#"{{"options": {{"queue": "{}"}}}}"#, queues[n % 4])))
        .collect();
    assert_eq!(sink.publish(&batch).await, vec![Outcome::Delivered; 12]);
    let operator = Operator::connect(broker.url()).await;
    for (n, queue) in queues.iter().enumerate() {
        let own = batch.iter().skip(n).step_by(4).map(|outgoing| outgoing.id);
        assert_eq!(operator.drain(queue).await, own.collect::<HashSet<_>>());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_keeps_tasks_where_a_worker_looks_or_says_that_none_does() {
    let mut redis = Redis::start().await;
    let mut settings = config(&redis.url(), "shop", Declare::Off);
    settings.routes = vec![RouteConfig {
        task: "shop.*".into(),
        exchange: Some("news".into()),
        exchange_type: Some(ExchangeType::Topic),
        routing_key: Some("feed.a".into()),
        ..RouteConfig::default()
    }];
    let sink = CelerySink::new(&settings).unwrap();
    let direct = r#"{"options": {"exchange_type": "direct", "queue": "shop"}}"#;
    let fanout = r#"{"options": {"exchange_type": "fanout", "exchange": "all"}}"#;
    let batch = [task("{}"), task(fanout), stored("application/json", "{}"), task("[]")];
    let outcomes = sink.publish(&batch).await;
    permanent(&outcomes[0], &["unroutable", "feed.a", "_kombu.binding.news"]);
    permanent(&outcomes[1], &["fanout"]);
    permanent(&outcomes[2], &["not a Celery task"]);
    permanent(&outcomes[3], &["not an object"]);

    // As a worker or the sink would declare it.
    settings.queues = vec![
        toml::from_str("name = 'feeds'\nexchange = 'news'\nexchange_type = 'topic'\nrouting_key = 'feed.*'").unwrap(),
    ];
    settings.default_queue = "feeds".to_owned();
    settings.declare = Declare::Active;
    settings.routes.clear();
    let active = CelerySink::new(&settings).unwrap();
    assert_eq!(active.publish(&[task("{}")]).await, [Outcome::Delivered]);
    assert_eq!(sink.publish(&[task("{}"), task(direct)]).await[0], Outcome::Delivered);
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let length: i64 = redis::cmd("LLEN")
        .arg("feeds")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(length, 2);

    redis.kill();
    let outcomes = sink.publish(&[task("{}"), task("[]")]).await;
    assert!(
        matches!(outcomes[0], Outcome::SinkDown(_) | Outcome::Unknown(_)),
        "{outcomes:?}"
    );
    let outcomes = sink.publish(&[task("{}"), task("[]")]).await;
    assert!(matches!(outcomes[0], Outcome::SinkDown(_)), "{outcomes:?}");
    permanent(&outcomes[1], &["not an object"]);
    redis.restart().await;
    assert_eq!(sink.publish(&[task("{}")]).await, [Outcome::Delivered]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_queues_are_made_a_missing_exchange_is_still_the_matter_of_its_own_task() {
    let (broker, queue, made) = (RabbitMq::shared(), name(), name());
    let sink = CelerySink::new(&config(broker.url(), &queue, Declare::Active)).unwrap();
    let batch = [
        task("{}"),
        task(r#"{"options": {"exchange": "nowhere", "routing_key": "x"}}"#),
        task("{}"),
        task(&format!(r#"{{"options": {{"queue": "{made}"}}}}"#)),
        task(r#"{"options": {"exchange": "nowhere", "routing_key": "x"}}"#),
        task("{}"),
    ];
    let outcomes = sink.publish(&batch).await;
    for at in [1, 4] {
        permanent(&outcomes[at], &["nowhere"]);
    }
    let operator = Operator::connect(broker.url()).await;
    for at in [0, 2, 3, 5] {
        assert_eq!(outcomes[at], Outcome::Delivered, "{outcomes:?}");
    }
    let expected = HashSet::from([batch[0].id, batch[2].id, batch[5].id]);
    assert_eq!(operator.drain(&queue).await, expected);
    assert_eq!(operator.drain(&made).await, HashSet::from([batch[3].id]));
    sink.close().await;
}

/// Emits tasks with one attempt while the broker is down, and waits until the relay has noticed.
async fn met_an_outage(config: &CeleryConfig) -> Service {
    let service = Service::start(config);
    service.emit(tasks(30).map(|task| task.max_attempts(1))).await;
    loop {
        let found = service.store.list(&Filter::default(), 100).await.unwrap().messages;
        let met = found.iter().filter(|row| row.last_error.is_some()).count();
        assert!(found.iter().all(|row| row.attempts == 0), "{found:?}");
        if met == 30 {
            return service;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_rabbitmq_charges_no_attempt() {
    let mut broker = RabbitMq::start().await;
    let queue = name();
    broker.kill();
    let service = met_an_outage(&config(&broker.url(), &queue, Declare::Active)).await;
    broker.restart().await;
    assert_eq!(
        service.drained().await,
        0,
        "a charged attempt would have been their last"
    );
    assert_eq!(Operator::connect(&broker.url()).await.drain(&queue).await.len(), 30);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_redis_charges_no_attempt() {
    let mut redis = Redis::start().await;
    redis.kill();
    let service = met_an_outage(&config(&redis.url(), "shop", Declare::Off)).await;
    redis.restart().await;
    assert_eq!(
        service.drained().await,
        0,
        "a charged attempt would have been their last"
    );
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let length: i64 = redis::cmd("LLEN")
        .arg("shop")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(length, 30);
}
