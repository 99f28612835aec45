//! `sendoff celery-relay` and `sendoff celery-dead`, as people and scripts meet them.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::sandbox::{Running, Sandbox, wait_until};

const DDL: &str = include_str!("../../../../stores/django-celery/tests/fixtures/sqlite.sql");

/// Nobody listens there.
const NOWHERE: &str = "redis://127.0.0.1:1/0";

fn project() -> Sandbox {
    let sandbox = Sandbox::sqlite();
    sandbox.sql(DDL);
    sandbox
}

fn add(sandbox: &Sandbox, table: &str, columns: &str, values: &str) {
    sandbox.sql(&format!(
        "INSERT INTO {table} (created_at, retries, task_id, task_name, args, kwargs, options, schema_version{columns})
         VALUES ('2026-01-02 03:04:05', 0, 'a', 'shop.add', '[1]', '{{}}', '{{}}', 1{values})"
    ));
}

#[test]
fn what_is_missing_is_said_with_advice() {
    let sandbox = Sandbox::sqlite();
    sandbox
        .run(["celery-relay"])
        .fails_with_reason(2, &["broker", "--broker"]);
    sandbox
        .run(["celery-relay", "--broker", "sqs://x"])
        .fails(2, &["redis://"]);
    let none = sandbox.run(["celery-relay", "--broker", NOWHERE]);
    none.fails(4, &["manage.py migrate"]);
    sandbox.sql("CREATE TABLE celery_outbox (id INTEGER)");
    sandbox
        .run(["celery-relay", "--broker", NOWHERE])
        .fails(4, &["manage.py migrate"]);
    let project = project();
    let sink = project.run(["celery-relay", "--broker", NOWHERE, "--sink", "other"]);
    sink.fails_with_reason(2, &["other"]);
    let odd = project.run(["celery-relay", "--broker", NOWHERE, "--send-timeout", "300"]);
    odd.fails(2, &["stale_timeout_seconds"]);
    assert_eq!(
        project
            .run(["celery-relay", "--broker", NOWHERE, "--idle-time", "-1"])
            .code,
        2
    );
}

#[test]
fn a_broker_that_is_down_is_reported_and_costs_nothing() {
    let project = project();
    add(&project, "celery_outbox", "", "");
    let report = project.json(&["celery-relay", "--broker", NOWHERE, "--once"]);
    assert_eq!(
        report,
        json!({"published": 0, "failed": 0, "dead": 0, "deferred": 1, "held": 0,
            "remaining": {"eligible": 0, "waiting": 1, "dead": 0}})
    );
}

#[test]
fn sigterm_ends_it_cleanly_and_the_liveness_file_is_touched_until_then() {
    let project = project();
    let alive = project.path("alive");
    let args = ["celery-relay", "--broker", NOWHERE, "--liveness-file", "alive"];
    let mut relay = Running::start(&mut project.command(args));
    wait_until("it lives", Duration::from_secs(30), || alive.exists());
    relay.signal(Signal::TERM);
    assert_eq!(relay.end(Duration::from_secs(30)).code(), Some(0));
}

#[test]
fn dead_letters_are_replayed_and_purged() {
    let project = project();
    for _ in 0..3 {
        add(
            &project,
            "celery_outbox_dead_letter",
            ", dead_at",
            ", '2026-01-02 03:04:05'",
        );
    }
    project.run(["celery-dead", "replay"]).fails_with_reason(2, &["--all"]);
    project
        .run(["celery-dead", "replay", "99"])
        .fails_with_reason(5, &["dead letter"]);
    assert_eq!(project.json(&["celery-dead", "replay", "2"]), json!({"replayed": 1}));
    assert_eq!(
        project.json(&["celery-dead", "replay", "--all", "--limit", "1"]),
        json!({"replayed": 1})
    );
    let report = project.json(&["celery-relay", "--broker", NOWHERE, "--once"]);
    assert_eq!(
        (&report["deferred"], &report["remaining"]["dead"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        project.json(&["celery-dead", "purge", "--older-than-dead", "1d"]),
        json!({"purged": 1})
    );
}
