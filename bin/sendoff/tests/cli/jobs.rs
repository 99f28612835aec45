//! `jobs`, and the output of `stats` and `reap` about jobs, on every database.

use std::sync::Arc;
use std::time::Duration;

use sendoff::emit::Names;
use sendoff::store::{Job, WorkStore};
use sendoff::{Message, Uuid};
use sendoff_store_mysql::{MysqlConfig, MysqlStore};
use sendoff_store_postgres::{PostgresConfig, PostgresStore};
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
use serde_json::{Value, json};

use crate::on_every_database;
use crate::sandbox::{Running, Sandbox, TestDatabase, block_on, wait_until};

on_every_database! {
    failed_jobs_are_listed_shown_retried_and_discarded
    jobs_of_every_state_are_listed
    a_list_has_the_beginning_of_long_jobs_and_show_has_all_of_them
    jobs_are_counted_and_reaped
    a_relay_reaps_jobs_on_its_own
}

const LEASE: Duration = Duration::from_secs(600);
const SHORT_LEASE: Duration = Duration::from_millis(50);

fn work(place: &TestDatabase) -> Arc<dyn WorkStore> {
    let names = |schema: &str| Names::new(Some(schema), Names::PREFIX).unwrap();
    match place {
        TestDatabase::Sqlite(path) => Arc::new(SqliteStore::new(SqliteConfig::new(path)).unwrap()),
        TestDatabase::Postgres { url, schema } => {
            Arc::new(PostgresStore::new(PostgresConfig::new(url).names(names(schema))).unwrap())
        }
        TestDatabase::Mysql { url, schema } => {
            Arc::new(MysqlStore::new(MysqlConfig::new(url).names(names(schema))).unwrap())
        }
    }
}

/// Emits jobs of these topics, and claims them all as a worker.
fn claimed(sandbox: &Sandbox, topics: &[&str], lease: Duration) -> Vec<Job> {
    let work = work(&sandbox.place);
    let message = |topic: &&str| Message::json(*topic, &json!({"for": topic})).unwrap().key("k");
    let jobs: Vec<Message> = topics.iter().map(message).collect();
    block_on(async {
        let mut tx = work.begin_jobs().await.unwrap();
        tx.emit(&jobs).await.unwrap();
        tx.commit().await.unwrap();
        work.claim_batch("w", jobs.len(), lease).await.unwrap()
    })
}

fn fail(sandbox: &Sandbox, jobs: &[Job]) {
    let work = work(&sandbox.place);
    block_on(async {
        for job in jobs {
            let error = format!("no paper for {}", job.topic);
            work.mark_failed("w", job.claim, &error).await.unwrap();
        }
    });
}

fn ids(list: &Value) -> Vec<Uuid> {
    let jobs = list["items"].as_array().unwrap().iter();
    jobs.map(|job| job["id"].as_str().unwrap().parse().unwrap()).collect()
}

fn failed_jobs_are_listed_shown_retried_and_discarded(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let topics = ["invoice.print", "invoice.send", "mail.send", "mail.forget"];
    let jobs = claimed(&sandbox, &topics, LEASE);
    fail(&sandbox, &jobs);
    let expected: Vec<Uuid> = jobs.iter().map(|job| job.id).collect();
    let all = sandbox.json(&["jobs", "ls"]);
    assert_eq!((ids(&all), &all["next"]), (expected.clone(), &json!(null)));
    let page = sandbox.json(&["jobs", "ls", "--limit", "1"]);
    assert_eq!(ids(&page), [expected[0]]);
    let page = sandbox.json(&["jobs", "ls", "--limit", "1", "--after", page["next"].as_str().unwrap()]);
    assert_eq!((ids(&page), page["next"].is_string()), (vec![expected[1]], true));
    assert_eq!(
        ids(&sandbox.json(&["jobs", "ls", "--topic", "invoice.*"])),
        expected[..2]
    );
    let by_error = sandbox.json(&["jobs", "ls", "--filter", "error=for mail"]);
    assert_eq!(ids(&by_error), expected[2..]);
    assert!(ids(&sandbox.json(&["jobs", "ls", "--older-than", "1h"])).is_empty());
    sandbox.run(["jobs", "ls", "--filter", "sink=out"]).fails(2, &["sink"]);
    let table = sandbox.ok(["jobs", "ls"]).out;
    assert!(table.contains("no paper for mail.send"), "{table}");

    let id = expected[0].to_string();
    let shown = sandbox.json(&["jobs", "show", &id]);
    assert_eq!(
        (
            &shown["state"],
            &shown["topic"],
            &shown["attempts"],
            &shown["last_error"]
        ),
        (
            &json!("failed"),
            &json!("invoice.print"),
            &json!(1),
            &json!("no paper for invoice.print")
        )
    );
    assert_eq!(shown["payload"], "{\"for\":\"invoice.print\"}");
    assert!(sandbox.ok(["jobs", "show", &id]).out.contains("invoice.print"));
    sandbox
        .run(["jobs", "show", &Uuid::new_v4().to_string()])
        .fails(5, &["no job"]);

    sandbox.run(["jobs", "retry", "--yes"]).fails(2, &["--all"]);
    assert_eq!(sandbox.json(&["jobs", "retry", "--all", "--dry-run"])["would_retry"], 4);
    assert_eq!(sandbox.json(&["jobs", "retry", &id, "--yes"])["retried"], 1);
    sandbox.run(["jobs", "retry", &id, "--yes"]).fails(5, &["failed job"]);
    assert_eq!(
        sandbox.json(&["jobs", "discard", "--topic", "mail.*", "--yes"])["discarded"],
        2
    );
    assert_eq!(ids(&sandbox.json(&["jobs", "ls", "--state", "failed"])), [expected[1]]);
    assert_eq!(
        sandbox.json(&["stats"])["jobs"],
        json!({"pending": 1, "running": 0, "retry": 0, "completed": 0, "failed": 1})
    );
    let audit = sandbox.json(&["audit"]);
    let noted: Vec<(&str, u64, &Value)> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["action"].as_str().unwrap(),
                row["affected"].as_u64().unwrap(),
                &row["filter"],
            )
        })
        .collect();
    // The retry that found no jobs is not in the audit.
    let (retried, discarded) = (json!({"ids": [id]}), json!({"topic": "mail.*"}));
    assert_eq!(noted, [("jobs discard", 2, &discarded), ("jobs retry", 1, &retried)]);
}

fn a_list_has_the_beginning_of_long_jobs_and_show_has_all_of_them(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let work = work(&sandbox.place);
    let text = format!("{}the end", "long ".repeat(40_000));
    let long = Message::bytes("long", "text/plain", text.clone()).header("h", "v".repeat(5000));
    let short = Message::bytes("short", "text/plain", "short").header("h", "v");
    block_on(async {
        let mut tx = work.begin_jobs().await.unwrap();
        tx.emit(&[long.clone(), short]).await.unwrap();
        tx.commit().await.unwrap();
    });
    let cut = |job: &Value| {
        let length = job["payload"].as_str().unwrap().len();
        let cuts = (
            job["payload_cut"].as_bool().unwrap(),
            job["headers_cut"].as_bool().unwrap(),
        );
        (
            length,
            job["payload_bytes"].as_u64().unwrap(),
            cuts,
            job["headers"] == json!({}),
        )
    };
    let listed = sandbox.json(&["jobs", "ls", "--payload"]);
    assert_eq!(cut(&listed["items"][0]), (4096, text.len() as u64, (true, true), true));
    assert_eq!(cut(&listed["items"][1]), (5, 5, (false, false), false));
    let found = sandbox.json(&["jobs", "ls", "--filter", "payload=the end"]);
    assert_eq!(ids(&found), [long.id()]);
    assert!(ids(&sandbox.json(&["jobs", "ls", "--filter", "payload=The end"])).is_empty());
    let id = long.id().to_string();
    let shown = sandbox.json(&["jobs", "show", &id]);
    assert_eq!(cut(&shown), (text.len(), text.len() as u64, (false, false), false));
    assert!(sandbox.ok(["jobs", "show", &id]).out.contains("the end"));
}

fn jobs_of_every_state_are_listed(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let jobs = claimed(&sandbox, &["failed", "retry", "running"], LEASE);
    fail(&sandbox, &jobs[..1]);
    let work = work(&sandbox.place);
    block_on(async {
        work.mark_retry("w", jobs[1].claim, LEASE, "jam").await.unwrap();
        let mut tx = work.begin_jobs().await.unwrap();
        tx.emit(&[Message::json("pending", &1).unwrap()]).await.unwrap();
        tx.commit().await.unwrap();
    });
    let states = |list: &Value| -> Vec<String> {
        let jobs = list["items"].as_array().unwrap().iter();
        jobs.map(|job| job["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        states(&sandbox.json(&["jobs", "ls"])),
        ["failed", "retry", "running", "pending"]
    );
    for state in ["pending", "running", "retry", "failed"] {
        let listed = sandbox.json(&["jobs", "ls", "--state", state]);
        assert_eq!(states(&listed), [state]);
        assert_eq!(listed["items"][0]["topic"], state);
        let is_running = state == "running";
        assert_eq!(listed["items"][0]["lease_owner"] == "w", is_running);
        assert_eq!(listed["items"][0]["lease_until"].is_string(), is_running);
        assert_eq!(
            listed["items"][0]["due_at"].is_string(),
            matches!(state, "pending" | "retry")
        );
    }
    assert!(states(&sandbox.json(&["jobs", "ls", "--state", "completed"])).is_empty());
    let refused = sandbox.run(["jobs", "ls", "--state", "dead"]);
    assert!(
        refused.code == 2 && refused.err.contains("completed or failed"),
        "{refused:?}"
    );
    let shown = sandbox.ok(["jobs", "show", &jobs[2].id.to_string()]).out;
    assert!(shown.contains("worker") && shown.contains("lease ends"), "{shown}");
    let table = sandbox.ok(["jobs", "ls", "--state", "running"]).out;
    assert!(table.contains("running") && table.contains('w'), "{table}");
}

fn a_relay_reaps_jobs_on_its_own(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure_file_sink("[relay]\nreap_after = \"1s\"\n");
    claimed(&sandbox, &["invoice.print", "mail.send"], SHORT_LEASE);
    let _relay = Running::start(&mut sandbox.command(["relay"]));
    wait_until("both jobs are due again", Duration::from_secs(30), || {
        sandbox.json(&["stats"])["jobs"]["retry"] == 2
    });
}

fn jobs_are_counted_and_reaped(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    assert_eq!(sandbox.json(&["stats"]).get("jobs"), None, "there are none");
    // First, or it would get one of the others, whose lease has run out.
    let held = claimed(&sandbox, &["held"], LEASE);
    let jobs = claimed(&sandbox, &["invoice.print", "mail.send"], SHORT_LEASE);
    assert_eq!(sandbox.json(&["stats"])["jobs"]["running"], 3);
    let fresh = sandbox.json(&["reap", "--stale-after", "1h"]);
    assert_eq!(fresh["jobs_reaped"], 0, "no lease ran out that long ago");
    let mut reaped = 0;
    wait_until("their leases have run out", Duration::from_secs(30), || {
        reaped += sandbox.json(&["reap", "--stale-after", "1ms"])["jobs_reaped"]
            .as_u64()
            .unwrap();
        reaped > 0
    });
    assert_eq!(reaped, 2);
    let audit = sandbox.json(&["audit"]);
    let last = &audit["items"][0];
    assert_eq!(
        (&last["action"], &last["affected"], &last["filter"]),
        (&json!("reap"), &json!(2), &json!({"stale_after_seconds": 0.001}))
    );
    let counts = sandbox.json(&["stats"])["jobs"].clone();
    assert_eq!((&counts["running"], &counts["retry"]), (&json!(1), &json!(2)));
    // The old worker has lost them; held jobs are not changed.
    let work = work(&sandbox.place);
    let both = [jobs[0].claim, held[0].claim];
    let lost = block_on(async { work.mark_success("w", &both).await.unwrap() });
    assert_eq!(lost, [jobs[0].claim]);
}
