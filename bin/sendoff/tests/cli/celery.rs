//! `sendoff celery-relay`, `sendoff celery-dead` and `sendoff celery-stats` for people and scripts.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::sandbox::{Running, Sandbox, test_variable, wait_until};

const DDL: &str = include_str!("../../../../stores/django-celery/tests/fixtures/sqlite.sql");

/// An address without a listener.
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
    wait_until("it is alive", Duration::from_secs(30), || alive.exists());
    relay.signal(Signal::TERM);
    assert_eq!(relay.end(Duration::from_secs(30)).code(), Some(0));
}

#[test]
fn dead_letters_are_retried_and_purged() {
    let project = project();
    for _ in 0..3 {
        add(
            &project,
            "celery_outbox_dead_letter",
            ", dead_at",
            ", '2026-01-02 03:04:05'",
        );
    }
    project.run(["celery-dead", "retry"]).fails_with_reason(2, &["--all"]);
    project
        .run(["celery-dead", "retry", "99"])
        .fails_with_reason(5, &["dead letter"]);
    assert_eq!(project.json(&["celery-dead", "retry", "2"]), json!({"retried": 1}));
    assert_eq!(
        project.json(&["celery-dead", "retry", "--all", "--limit", "1"]),
        json!({"retried": 1})
    );
    let report = project.json(&["celery-relay", "--broker", NOWHERE, "--once"]);
    assert_eq!(
        (&report["deferred"], &report["remaining"]["dead"]),
        (&json!(2), &json!(1))
    );
    project.run(["celery-dead", "purge"]).fails(2, &["--older-than-dead"]);
    let purge = [
        "celery-dead",
        "purge",
        "--older-than-created",
        "1d",
        "--task-name",
        "shop.*",
    ];
    assert_eq!(
        project.json(&[&purge[..], &["--dry-run"]].concat()),
        json!({"would_purge": 1, "tasks": {"shop.add": 1}})
    );
    assert_eq!(
        project.json(&[
            "celery-dead",
            "purge",
            "--older-than-dead",
            "1d",
            "--task-name",
            "mail.*"
        ]),
        json!({"purged": 0, "tasks": {}})
    );
    assert_eq!(project.json(&purge), json!({"purged": 1, "tasks": {"shop.add": 1}}));
}

#[test]
fn the_tables_are_told_at_a_glance() {
    let project = project();
    let empty = json!({"eligible": 0, "waiting": 0, "dead": 0, "oldest_eligible_seconds": null, "failing": []});
    assert_eq!(project.json(&["celery-stats"]), empty);
    for (columns, values) in [("", ""), (", updated_at, retry_after", ", '2026-01-02', '9000-01-01'")] {
        add(&project, "celery_outbox", columns, values);
    }
    project.sql("UPDATE celery_outbox SET retries = 3 WHERE retry_after IS NOT NULL");
    let stats = project.json(&["celery-stats", "--top", "5"]);
    assert_eq!((&stats["eligible"], &stats["waiting"]), (&json!(1), &json!(1)));
    assert!(stats["oldest_eligible_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(stats["failing"], json!([{"task": "shop.add", "failed_attempts": 3}]));
    let told = project.run(["celery-stats", "--top", "5"]).out;
    assert!(told.contains("eligible") && told.contains("shop.add"), "{told}");
}

/// Prints the flags of the package's commands with their defaults.
const PYTHONS_FLAGS: &str = r#"
import argparse, json, django
from django.conf import settings
settings.configure(INSTALLED_APPS=["django_celery_outbox"], USE_TZ=True)
django.setup()
from django.core.management import load_command_class
from django_celery_outbox._settings import load_stale_timeout_seconds_setting
def flags(name):
    parser = argparse.ArgumentParser(add_help=False)
    load_command_class("django_celery_outbox", name).add_arguments(parser)
    found = {action.option_strings[0]: action.default for action in parser._actions if action.option_strings}
    if "--stale-timeout-seconds" in found:
        found["--stale-timeout-seconds"] = load_stale_timeout_seconds_setting()
    return found
names = ["relay", "stats", "purge_dead_letter", "replay_dead_letter"]
print(json.dumps({name: flags("celery_outbox_" + name) for name in names}))
"#;

#[test]
fn the_flags_are_those_of_the_python_commands_with_their_defaults() {
    let python = std::process::Command::new(test_variable("SENDOFF_TEST_DJANGO"))
        .args(["-c", PYTHONS_FLAGS])
        .output()
        .unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let python: serde_json::Value = serde_json::from_slice(&python.stdout).unwrap();
    let sandbox = Sandbox::sqlite();
    for (theirs, ours) in [
        ("relay", &["celery-relay"][..]),
        ("stats", &["celery-stats"]),
        ("purge_dead_letter", &["celery-dead", "purge"]),
        ("replay_dead_letter", &["celery-dead", "retry"]),
    ] {
        let help = sandbox.run([ours, &["--help"]].concat()).out;
        for (flag, default) in python[theirs].as_object().unwrap() {
            // Here it is the flag --json of every command.
            if flag == "--format" {
                continue;
            }
            let from = help
                .find(&format!("{flag} "))
                .or_else(|| help.find(&format!("{flag}\n")));
            let from = from.unwrap_or_else(|| panic!("{ours:?} has no {flag}: {help}"));
            let of_flag = help[from..].split("\n\n").next().unwrap();
            let of_flag = of_flag.split("\n      --").next().unwrap();
            let told = of_flag
                .split_once("[default: ")
                .map(|(_, rest)| rest.split(']').next().unwrap());
            let told = told.and_then(|told| told.parse::<f64>().ok());
            assert_eq!(told, default.as_f64(), "{flag}: {of_flag}");
        }
    }
}
