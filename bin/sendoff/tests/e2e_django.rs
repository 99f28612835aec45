//! A Django project enqueues, `sendoff celery-relay` relays, workers of Celery run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod sandbox;
mod shop;

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use rustix::process::Signal;
use sandbox::{block_on, wait_until};
use sendoff_testkit::servers::{RabbitMq, Redis};
use serde_json::{Value, json};
use shop::{PATIENCE, Project};

const OLD: &str = "SENDOFF_TEST_CELERY_OLD";
const NEW: &str = "SENDOFF_TEST_CELERY_NEW";

#[test]
fn tasks_in_postgresql_run_on_the_newest_celery_over_redis() {
    let redis = runtime().block_on(Redis::start());
    runs_every_task(&Project::on_postgres(&redis.url(), &redis.url()), NEW);
}

#[test]
fn tasks_in_mysql_run_on_the_oldest_celery_over_rabbitmq() {
    let redis = runtime().block_on(Redis::start());
    runs_every_task(&Project::on_mysql(RabbitMq::shared().url(), &redis.url()), OLD);
}

/// The Python relay refuses SQLite.
#[test]
fn tasks_in_sqlite_reach_the_broker() {
    let redis = runtime().block_on(Redis::start());
    let project = Project::on_sqlite(&redis.url(), &redis.url());
    configure(&project);
    project.enqueue("every");
    insert_by_sql(&project);
    let report = project.relay_once(&[]);
    assert_eq!(report["published"], 27, "{report}");
    assert_eq!(
        report["remaining"],
        json!({"eligible": 0, "waiting": 0, "dead": 0}),
        "{report}"
    );
    assert_eq!(arrived(&project).1, 27);
}

/// A runtime whose threads keep a server's helpers going.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// Writes what the application sets in Celery, too. Tells whether the broker is RabbitMQ.
fn configure(project: &Project) -> bool {
    let on_rabbitmq = project.broker.starts_with("amqp");
    let config = format!(
        "[[sink]]\nname = \"celery\"\ntype = \"celery\"\nurl = {:?}\ndefault_queue = {:?}\ndeclare = \"active\"\n{}",
        project.broker,
        project.queue,
        if on_rabbitmq { "queue_max_priority = 10\n" } else { "" }
    );
    std::fs::write(project.path("sendoff.toml"), config).unwrap();
    on_rabbitmq
}

fn runs_every_task(project: &Project, celery: &str) {
    let on_rabbitmq = configure(project);
    let early = project.enqueue("early");
    // Longer than the second that one of them has: it counts from the transaction, however late the relay is.
    std::thread::sleep(Duration::from_millis(1100));
    let report = project.relay_once(&[]);
    assert_eq!(report["published"], early.as_object().unwrap().len(), "{report}");
    let mut worker = project.worker(celery);
    project.line("the first task", |line| line["id"] == early["expires later"]);

    let mut relay = project.relay(&["--idle-time", "0.1"]);
    let ids = project.enqueue("every");
    let by_sql = insert_by_sql(project);
    assert_eq!(result_of(project, &json!(by_sql)), 77);
    check_results(project, &ids);
    check_what_comes_after(project, &ids);
    check_early(project, &early, on_rabbitmq);

    relay.signal(Signal::TERM);
    assert_eq!(relay.end(), Some(0));
    let report = project.relay_once(&[]);
    assert_eq!(
        report["remaining"],
        json!({"eligible": 0, "waiting": 0, "dead": 0}),
        "{report}"
    );
    worker.signal(Signal::KILL);
    worker.end();
}

fn result_of(project: &Project, id: &Value) -> Value {
    project.line(&id.to_string(), |line| line["id"] == *id)["result"].clone()
}

fn check_results(project: &Project, ids: &Value) {
    let result = |name: &str| result_of(project, &ids[name]);
    for (name, sum) in [
        ("plain", 5),
        ("own id", 10),
        ("expires at", 13),
        ("queue", 6),
        ("how to retry", 16),
        ("not retried", 17),
        ("ignored", 18),
        ("shadow", 19),
        ("hidden", 20),
        ("stamped", 15),
        ("countdown", 8),
        ("eta", 10),
    ] {
        assert_eq!(result(name), sum, "{name}");
    }
    assert_eq!(result("no arguments"), json!([[], {}, [null, null]]));
    let arguments = json!([1, "\u{e9}", null, true, 1.5, [1, 2], {"b": 1, "a": {"n": null}}]);
    let named = json!({"zeta": 1, "jp": "\u{65e5}\u{672c}", "q": "it's \"q\""});
    assert_eq!(result("arguments"), json!([arguments, named, [null, null]]));
    assert_eq!(result("keys that are numbers")[0], json!([{"1": "a", "null": "b"}]));
    assert_eq!(result("by name"), json!([["x"], {"k": 1}, [null, null]]));
    assert_eq!(result("time limits")[2], json!([60, 50]));
}

fn check_what_comes_after(project: &Project, ids: &Value) {
    let ran = |what: &str, task: &str, result: Value| {
        project.line(what, |line| line["task"] == task && line["result"] == result);
    };
    ran("the link", "shop.add", json!(551));
    ran("the chain", "shop.add", json!(421));
    for result in [30, 31, 32] {
        ran("the group", "shop.add", json!(result));
    }
    ran("the chord", "shop.total", json!(83));
    ran("the chain with a group in it", "shop.total", json!(125));
    ran("the error", "shop.on_error", json!([ids["link_error"], "as it should"]));
}

/// The order was the broker's choice: the highest comes first on RabbitMQ, the lowest on Redis.
fn check_early(project: &Project, early: &Value, on_rabbitmq: bool) {
    let journal = project.journal();
    let order: Vec<i64> = journal.iter().filter_map(|line| line["result"].as_i64()).collect();
    let order: Vec<i64> = order
        .into_iter()
        .filter(|result| (1000..1010).contains(result))
        .collect();
    let expected = if on_rabbitmq {
        [1009, 1006, 1003, 1000]
    } else {
        [1000, 1003, 1006, 1009]
    };
    assert_eq!(order, expected);
    assert!(
        !journal.iter().any(|line| line["id"] == early["expired"]),
        "the expired task was run"
    );
}

/// As any other program would.
fn insert_by_sql(project: &Project) -> String {
    let id = sendoff::Uuid::new_v4().to_string();
    let now = match project.database.split_once(':').unwrap().0 {
        "mysql" => "UTC_TIMESTAMP(6)",
        "sqlite" => "strftime('%Y-%m-%d %H:%M:%f', 'now')",
        _ => "now()",
    };
    let sql = format!(
        "INSERT INTO celery_outbox (created_at, retries, task_id, task_name, args, kwargs, options, schema_version)
         VALUES ({now}, 0, '{id}', 'shop.add', '[70, 7]', '{{}}', '{{}}', 1)"
    );
    run_sql(&project.database, &sql);
    id
}

fn run_sql(database: &str, sql: &str) {
    use mysql_async::prelude::Queryable as _;
    if let Some(path) = database.strip_prefix("sqlite:") {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
        return connection.execute_batch(sql).unwrap();
    }
    block_on(async {
        if database.starts_with("mysql:") {
            let mut conn = mysql_async::Conn::from_url(database).await.unwrap();
            conn.query_drop(sql).await.unwrap();
            conn.disconnect().await.unwrap();
        } else {
            sandbox::connect(database).await.batch_execute(sql).await.unwrap();
        }
    });
}

/// Rows for a drain, as a Django application would have written them.
fn fill(project: &Project, count: usize) {
    run_sql(
        &project.database,
        &format!(
            "INSERT INTO celery_outbox (created_at, retries, task_id, task_name, args, kwargs, options, schema_version)
             SELECT now(), 0, gen_random_uuid()::text, 'shop.add', jsonb_build_array(n, 1), '{{}}', '{{}}', 1
             FROM generate_series(1, {count}) AS n"
        ),
    );
}

fn left(project: &Project) -> i64 {
    block_on(async {
        let client = sandbox::connect(&project.database).await;
        client
            .query_one("SELECT count(*) FROM celery_outbox", &[])
            .await
            .unwrap()
            .get(0)
    })
}

/// Who sent how many, by the name that senders give themselves, and how many ids there are.
fn arrived(project: &Project) -> (BTreeMap<&'static str, usize>, usize) {
    let client = redis::Client::open(project.broker.as_str()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let tasks: Vec<String> = redis::cmd("LRANGE")
        .arg(&project.queue)
        .arg(0)
        .arg(-1)
        .query(&mut connection)
        .unwrap();
    let (mut senders, mut ids) = (BTreeMap::new(), HashSet::new());
    for task in tasks {
        let task: Value = serde_json::from_str(&task).unwrap();
        let origin = task["headers"]["origin"].as_str().unwrap();
        let sender = if origin.starts_with("sendoff") {
            "sendoff"
        } else {
            "python"
        };
        *senders.entry(sender).or_insert(0) += 1;
        ids.insert(task["headers"]["id"].to_string());
    }
    (senders, ids.len())
}

#[test]
fn beside_the_python_relay_nothing_is_lost_or_sent_twice() {
    let redis = runtime().block_on(Redis::start());
    let project = Project::on_postgres(&redis.url(), &redis.url());
    configure(&project);
    fill(&project, 3000);

    // It gives way to the Python relay at once ...
    let mut ours = project.relay(&["--batch-size", "50"]);
    wait_until("some are sent", PATIENCE, || left(&project) < 2900);
    ours.signal(Signal::TERM);
    assert_eq!(ours.end(), Some(0));
    let before = left(&project);
    fill(&project, 2000);
    // ... works beside it ...
    let mut python = project.python_relay(&["--batch-size", "50"]);
    wait_until("the Python relay sends, too", PATIENCE, || {
        arrived(&project).0.contains_key("python")
    });
    let ours = project.relay(&["--batch-size", "50"]);
    wait_until("all are sent", PATIENCE, || left(&project) == 0);
    let (senders, ids) = arrived(&project);
    assert_eq!(ids, 5000, "{senders:?}, {before} were left after the first part");
    assert_eq!(senders.values().sum::<usize>(), 5000, "{senders:?}");
    assert_eq!(senders.len(), 2, "{senders:?}");

    // ... and takes over what it leaves behind when it is killed.
    drop(ours);
    fill(&project, 2000);
    wait_until("the Python relay goes on", PATIENCE, || left(&project) < 1950);
    python.signal(Signal::KILL);
    python.end();
    let _ours = project.relay(&[
        "--send-timeout",
        "1",
        "--stale-timeout-seconds",
        "2",
        "--idle-time",
        "0.2",
    ]);
    wait_until("all are sent", PATIENCE, || left(&project) == 0);
    let (senders, ids) = arrived(&project);
    assert_eq!(ids, 7000, "{senders:?}");
    // What the killed one had in hand may have been sent before.
    assert!(senders.values().sum::<usize>() <= 7050, "{senders:?}");
}

/// Rows that have failed once and are due again.
fn fill_due(project: &Project, count: usize) {
    run_sql(
        &project.database,
        &format!(
            "INSERT INTO celery_outbox (created_at, updated_at, retry_after, retries, task_id, task_name, args, kwargs, options,
                 schema_version)
             SELECT now(), now() - interval '2 minutes', now() - interval '1 second', 1, gen_random_uuid()::text, 'shop.add',
                 jsonb_build_array(n, 1), '{{}}', '{{}}', 1
             FROM generate_series(1, {count}) AS n"
        ),
    );
}

#[test]
fn beside_the_python_relay_retries_are_sent_once() {
    let redis = runtime().block_on(Redis::start());
    let project = Project::on_postgres(&redis.url(), &redis.url());
    configure(&project);
    let python = project.python_relay(&["--batch-size", "200", "--idle-time", "0.1"]);
    let ours = project.relay(&["--batch-size", "50", "--idle-time", "0.1"]);
    wait_until("both relays send", PATIENCE, || {
        fill(&project, 200);
        std::thread::sleep(Duration::from_millis(200));
        arrived(&project).0.len() == 2
    });
    wait_until("all are sent", PATIENCE, || left(&project) == 0);
    let before = arrived(&project).1;
    for _ in 0..3 {
        fill_due(&project, 2000);
        wait_until("all are sent", PATIENCE, || left(&project) == 0);
    }
    let (senders, ids) = arrived(&project);
    assert_eq!(ids, before + 6000, "{senders:?}");
    assert_eq!(senders.values().sum::<usize>(), ids, "sent twice: {senders:?}");
    drop((python, ours));
}
