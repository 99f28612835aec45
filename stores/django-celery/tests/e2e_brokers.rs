//! Real brokers: what the Python relay loses there, this one keeps.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by it")]

#[allow(dead_code, reason = "each test binary uses some of it")]
#[path = "rules/scratch.rs"]
mod scratch;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use lapin::options::{
    BasicCancelOptions, BasicConsumeOptions, BasicGetOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties};
use scratch::Scratch;
use sendoff::{Sink, Uuid};
use sendoff_sink_celery::config::Declare;
use sendoff_sink_celery::{CeleryConfig, CelerySink};
use sendoff_store_django_celery::{DjangoRelay, Report, Settings};
use sendoff_testkit::servers::{RabbitMq, Redis};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

fn sink(url: &str, queue: &str, declare: Declare) -> Arc<dyn Sink> {
    let config = CeleryConfig {
        url: Some(sendoff_wire::Address::parse(url).unwrap()),
        default_queue: queue.to_owned(),
        declare,
        ..CeleryConfig::default()
    };
    Arc::new(CelerySink::new(&config).unwrap())
}

fn settings() -> Settings {
    Settings {
        idle_time: Duration::from_millis(50),
        broker_outage_cooldown: Duration::from_millis(200),
        ..Settings::default()
    }
}

async fn once(scratch: &Scratch, sink: Arc<dyn Sink>) -> Report {
    let relay = DjangoRelay::new(scratch.outbox.clone(), sink, settings()).unwrap();
    relay.run_once(CancellationToken::new()).await.unwrap()
}

fn name() -> String {
    format!("shop-{}", Uuid::now_v7())
}

/// Somebody who looks after queues.
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

    /// The ids of all tasks in a queue, and how many copies of them there are.
    async fn drain(&self, queue: &str) -> (HashSet<String>, usize) {
        let look = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let found = self.channel.queue_declare(queue.into(), look, FieldTable::default());
        let copies = found.await.unwrap().message_count() as usize;
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let tag = name();
        let consumer = self
            .channel
            .basic_consume(queue.into(), tag.as_str().into(), options, FieldTable::default());
        let messages = consumer.await.unwrap().take(copies);
        let id = |message: lapin::Result<lapin::message::Delivery>| {
            let message = message.unwrap();
            message.properties.correlation_id().as_ref().unwrap().to_string()
        };
        let ids = messages.map(id).collect().await;
        let cancelled = self
            .channel
            .basic_cancel(tag.as_str().into(), BasicCancelOptions::default());
        cancelled.await.unwrap();
        (ids, copies)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_row_with_a_missing_exchange_fails_and_its_neighbours_are_sent() {
    let (broker, queue, scratch) = (RabbitMq::shared(), name(), Scratch::postgres().await);
    let operator = Operator::connect(broker.url()).await;
    operator.declare(&queue).await;
    scratch.add_many(4).await;
    for (task, options) in [
        ("task-1", r#"{"exchange": "nowhere", "routing_key": "x"}"#),
        ("task-2", r#"{"queue": "no-such-queue"}"#),
    ] {
        scratch
            .run(&format!(
                "UPDATE celery_outbox SET options = '{options}' WHERE task_id = '{task}'"
            ))
            .await;
    }
    let sink = || sink(broker.url(), &queue, Declare::Passive);
    let report = once(&scratch, sink()).await;
    assert_eq!((report.published, report.failed), (2, 2), "{report:?}");
    assert_eq!(
        operator.drain(&queue).await.0,
        HashSet::from(["task-0".to_owned(), "task-3".to_owned()])
    );
    let failed = "SELECT task_id FROM celery_outbox WHERE retries = 1 ORDER BY id";
    assert_eq!(scratch.values(failed).await, ["task-1", "task-2"]);
    // The last attempt, and the reason that stays.
    scratch.run("UPDATE celery_outbox SET retries = 4").await;
    scratch.make_due().await;
    assert_eq!(once(&scratch, sink()).await.dead, 2);
    let reasons = scratch
        .values("SELECT failure_reason FROM celery_outbox_dead_letter ORDER BY id")
        .await;
    assert!(
        reasons[0].contains("nowhere") && reasons[1].contains("no-such-queue"),
        "{reasons:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_deleted_under_the_relay_loses_nothing() {
    let (broker, queue, scratch) = (RabbitMq::shared(), name(), Scratch::postgres().await);
    let operator = Operator::connect(broker.url()).await;
    operator.declare(&queue).await;
    let stop = CancellationToken::new();
    let sink = sink(broker.url(), &queue, Declare::Passive);
    let relay = DjangoRelay::new(scratch.outbox.clone(), sink, settings()).unwrap();
    let running = tokio::spawn(relay.run(stop.clone()));
    scratch.add_many(50).await;
    until("all are sent", async || scratch.count("celery_outbox").await == "0").await;
    assert_eq!(operator.drain(&queue).await.1, 50);
    operator.delete(&queue).await;
    scratch.add_many(50).await;
    let failed = "SELECT COUNT(*) FROM celery_outbox WHERE retries = 1 AND retry_after IS NOT NULL";
    until("all have failed", async || scratch.value(failed).await == "50").await;
    operator.declare(&queue).await;
    scratch.make_due().await;
    until("all are sent", async || scratch.count("celery_outbox").await == "0").await;
    assert_eq!(operator.drain(&queue).await.0.len(), 50);
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.published, report.failed, report.dead), (100, 50, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rabbitmq_that_is_killed_while_tasks_flow_loses_none_and_costs_no_attempt() {
    const ROWS: usize = 6000;
    let (mut broker, queue, scratch) = (RabbitMq::start().await, name(), Scratch::postgres().await);
    scratch.add_many(ROWS).await;
    let stop = CancellationToken::new();
    let sink = sink(&broker.url(), &queue, Declare::Active);
    let relay = DjangoRelay::new(scratch.outbox.clone(), sink, settings()).unwrap();
    let running = tokio::spawn(relay.run(stop.clone()));
    let count = async || scratch.count("celery_outbox").await.parse::<usize>().unwrap();
    until("some are sent", async || count().await < ROWS - 200).await;
    broker.kill();
    let when_killed = count().await;
    assert!(when_killed > 0, "all were sent before the broker was killed");
    let deferred = "SELECT COUNT(*) FROM celery_outbox WHERE retry_after IS NOT NULL";
    until("the outage is noticed", async || scratch.value(deferred).await != "0").await;
    broker.restart().await;
    until("all are sent", async || count().await == 0).await;
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.failed, report.dead), (0, 0), "{report:?}");
    let (ids, copies) = Operator::connect(&broker.url()).await.drain(&queue).await;
    assert_eq!(
        ids.len(),
        ROWS,
        "{copies} copies; {when_killed} were left when it was killed"
    );
    // Only what was on its way can have come twice.
    assert!(copies <= ROWS + 200, "{copies}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_of_seconds_to_expire_counts_from_the_transaction() {
    let (redis, queue, scratch) = (Redis::start().await, name(), Scratch::sqlite().await);
    scratch.add_many(1).await;
    scratch
        .run("UPDATE celery_outbox SET created_at = '2026-01-02 03:04:05.250000', options = '{\"expires\": 90}'")
        .await;
    assert_eq!(
        once(&scratch, sink(&redis.url(), &queue, Declare::Off)).await.published,
        1
    );
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let sent: Vec<String> = redis::cmd("LRANGE")
        .arg(&queue)
        .arg(0)
        .arg(-1)
        .query_async(&mut connection)
        .await
        .unwrap();
    let envelope: serde_json::Value = serde_json::from_str(&sent[0]).unwrap();
    assert_eq!(envelope["headers"]["expires"], "2026-01-02T03:05:35.250000+00:00");
    assert_eq!(envelope["headers"]["id"], "task-0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_due_late_stays_in_its_table_and_comes_in_time() {
    let (redis, queue, scratch) = (Redis::start().await, name(), Scratch::postgres().await);
    let config = CeleryConfig {
        url: Some(sendoff_wire::Address::parse(&redis.url()).unwrap()),
        default_queue: queue.clone(),
        hold_eta: Some(Duration::from_secs(2)),
        ..CeleryConfig::default()
    };
    scratch.add_many(2).await;
    let eta = "jsonb_build_object('eta', to_char(now() at time zone 'UTC' + interval '5 s', 'YYYY-MM-DD\"T\"HH24:MI:SS.US+00:00'))";
    scratch
        .run(&format!(
            "UPDATE celery_outbox SET options = {eta} WHERE task_id = 'task-1'"
        ))
        .await;
    let began = Instant::now();
    let sink: Arc<dyn Sink> = Arc::new(CelerySink::new(&config).unwrap());
    let report = once(&scratch, Arc::clone(&sink)).await;
    assert_eq!((report.published, report.held), (1, 1), "{report:?}");
    let stop = CancellationToken::new();
    let relay = DjangoRelay::new(scratch.outbox.clone(), sink, settings()).unwrap();
    let running = tokio::spawn(relay.run(stop.clone()));
    until("it is sent", async || scratch.count("celery_outbox").await == "0").await;
    let waited = began.elapsed().as_secs_f64();
    assert!((1.5..5.0).contains(&waited), "{waited}");
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.published, report.failed, report.dead), (1, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_deleted_is_named_as_the_reason_and_its_dead_letters_can_be_sent() {
    let (broker, queue, scratch) = (RabbitMq::shared(), name(), Scratch::postgres().await);
    let operator = Operator::connect(broker.url()).await;
    operator.declare(&queue).await;
    let sink = sink(broker.url(), &queue, Declare::Passive);
    let settings = Settings {
        max_retries: 1,
        ..settings()
    };
    let stop = CancellationToken::new();
    let relay = DjangoRelay::new(scratch.outbox.clone(), sink, settings).unwrap();
    let running = tokio::spawn(relay.run(stop.clone()));
    scratch.add_many(50).await;
    until("all are sent", async || scratch.count("celery_outbox").await == "0").await;
    operator.delete(&queue).await;
    scratch.add_many(50).await;
    let dead = async || scratch.count("celery_outbox_dead_letter").await;
    until("all are dead", async || dead().await == "50").await;
    let reasons = scratch
        .values("SELECT failure_reason FROM celery_outbox_dead_letter")
        .await;
    assert!(reasons.iter().all(|reason| reason.contains(&queue)), "{reasons:?}");
    assert!(
        reasons.iter().any(|reason| reason.contains("unroutable")),
        "{reasons:?}"
    );
    operator.declare(&queue).await;
    assert_eq!(scratch.outbox.retry_dead(None, 100).await.unwrap(), 50);
    until("all are sent", async || scratch.count("celery_outbox").await == "0").await;
    assert_eq!(operator.drain(&queue).await.1, 50);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_is_told_how_much_is_left_of_a_number_of_seconds_to_expire() {
    let (broker, queue, scratch) = (RabbitMq::shared(), name(), Scratch::postgres().await);
    let operator = Operator::connect(broker.url()).await;
    operator.declare(&queue).await;
    scratch.add_many(1).await;
    let created_at = scratch.moment(-30);
    scratch
        .run(&format!(
            "UPDATE celery_outbox SET created_at = {created_at}, options = '{{\"expires\": 90}}'"
        ))
        .await;
    assert_eq!(
        once(&scratch, sink(broker.url(), &queue, Declare::Passive))
            .await
            .published,
        1
    );
    let got = operator
        .channel
        .basic_get(queue.as_str().into(), BasicGetOptions { no_ack: true });
    let message = got.await.unwrap().unwrap();
    let expiration = message.properties.expiration().as_ref().unwrap().to_string();
    assert!((40_000..=60_000).contains(&expiration.parse().unwrap()), "{expiration}");
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        sleep(Duration::from_millis(5)).await;
    }
}
