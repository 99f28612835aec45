//! `sendoff celery-relay` next to the Python relay of the same tables.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod sandbox;
mod shop;

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use rustix::process::Signal;
use sandbox::wait_until;
use sendoff_testkit::servers::Redis;
use serde_json::Value;
use shop::{PATIENCE, Project, database};
use tokio::runtime::Runtime;

/// Rows for a drain, as a Django application would have written them.
fn fill(project: &Project, count: usize) {
    database::run(
        &project.database,
        &format!(
            "INSERT INTO celery_outbox (created_at, retries, task_id, task_name, args, kwargs, options, schema_version)
             SELECT now(), 0, gen_random_uuid()::text, 'shop.add', jsonb_build_array(n, 1), '{{}}', '{{}}', 1
             FROM generate_series(1, {count}) AS n"
        ),
    );
}

fn left(project: &Project) -> i64 {
    let rows = database::pairs(&project.database, "SELECT count(*)::text, '' FROM celery_outbox");
    rows[0].0.parse().unwrap()
}

/// The number of tasks by sender, and the number of ids.
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

/// A project with tables, and its running broker.
fn project() -> ((Redis, Runtime), Project) {
    let runtime = Runtime::new().unwrap();
    let redis = runtime.block_on(Redis::start());
    let project = Project::on_postgres(&redis.url(), &redis.url());
    let config = format!(
        "[[sink]]\nname = \"celery\"\ntype = \"celery\"\nurl = {:?}\ndefault_queue = {:?}\ndeclare = \"active\"\n",
        project.broker, project.queue
    );
    std::fs::write(project.path("sendoff.toml"), config).unwrap();
    project.enqueuer().wait();
    ((redis, runtime), project)
}

#[test]
fn beside_the_python_relay_nothing_is_lost_or_sent_twice() {
    let (_redis, project) = project();
    fill(&project, 3000);

    // It gives way to the Python relay immediately ...
    let mut ours = project.relay(&["--batch-size", "50"]);
    wait_until("some are sent", PATIENCE, || left(&project) < 2900);
    ours.signal(Signal::TERM);
    assert_eq!(ours.end(), Some(0));
    let before = left(&project);
    fill(&project, 2000);
    // ... works next to it ...
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
    wait_until("the Python relay continues", PATIENCE, || left(&project) < 1950);
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
    // The killed relay may already have sent what it had in flight.
    assert!(senders.values().sum::<usize>() <= 7050, "{senders:?}");
}

/// Rows that have failed once and are due again.
fn fill_due(project: &Project, count: usize) {
    database::run(
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
    let (_redis, project) = project();
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
