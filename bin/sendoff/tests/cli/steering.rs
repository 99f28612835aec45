//! `stats`, `retry`, `reset`, `dead discard`, `keys`, `pause`, `lanes`, `reap`, `cleanup` and `audit`, on every
//! database.

use serde_json::{Value, json};

use crate::on_every_database;
use crate::sandbox::{Sandbox, TestDatabase};
use crate::sink::{hook, server};

on_every_database! {
    a_full_disk_fills_the_waiting_table_and_nothing_is_lost
    after_an_outage_only_what_it_stopped_becomes_due
    a_message_named_by_its_id_becomes_due_and_an_unknown_one_is_missing
    a_topic_that_is_paused_waits_and_goes_on_when_it_is_resumed
    a_blocked_key_is_seen_and_released
    dead_letters_are_discarded_only_when_they_are_named
    dead_letters_are_chosen_by_their_age
    lanes_and_leases_are_shown
    clean_up_takes_what_is_old_enough
    clean_up_takes_delivered_messages_in_batches_as_one_command
    clean_up_takes_idempotency_keys_whose_window_has_passed
    delivered_messages_are_seen_and_counted_by_sink
    every_change_is_in_the_audit
}

const FULL: &str = "[[sink]]\nname = \"full\"\ntype = \"file\"\npath = \"/dev/full\"\nfsync = false\n\
                    [[route]]\nmatch = \"*\"\nto = [\"full\"]\n";

/// No route matches, so that everything becomes a dead letter.
const NOWHERE: &str = "[[sink]]\nname = \"out\"\ntype = \"stdout\"\n[[route]]\nmatch = \"other\"\nto = [\"out\"]\n";

fn stats(sandbox: &Sandbox) -> Value {
    sandbox.json(&["stats"])
}

fn a_full_disk_fills_the_waiting_table_and_nothing_is_lost(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure(FULL);
    for _ in 0..3 {
        sandbox.emit(&["order.placed", "--payload", "{}", "--key", "k"]);
    }
    assert_eq!(stats(&sandbox)["ready"], 3);
    assert!(stats(&sandbox)["oldest_ready_seconds"].as_f64().unwrap() >= 0.0);
    sandbox.ok(["relay", "--once"]);
    let counts = stats(&sandbox);
    assert_eq!((&counts["waiting"], &counts["failed"]), (&json!(3), &json!(0)));
    assert_eq!((&counts["total"], &counts["pending"]), (&json!(3), &json!(3)));
    assert_eq!(counts["oldest_ready_seconds"], Value::Null);
    assert!(counts["oldest_pending_seconds"].as_f64().unwrap() >= 0.0, "{counts}");
    let keys = sandbox.json(&["keys", "ls"]);
    assert_eq!(
        (&keys["items"][0]["key"], &keys["items"][0]["blocked"]),
        (&json!("k"), &json!(2))
    );
    assert_eq!(keys["items"][0]["state"], "deferred");
    // Only the head can be made due: the messages behind it keep their order.
    sandbox.ok(["retry", "--reset", "--key", "k"]);
    assert_eq!(stats(&sandbox)["waiting"], 3);
    sandbox.run(["retry"]).fails(2, &["no messages are selected"]);
}

fn a_topic_that_is_paused_waits_and_goes_on_when_it_is_resumed(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let file = sandbox.configure_file_sink("");
    assert_eq!(sandbox.json(&["pause", "topic", "order.*"])["changed"], true);
    assert_eq!(sandbox.json(&["pause", "topic", "order.*"])["changed"], false);
    assert_eq!(sandbox.json(&["pause"])["items"][0]["name"], "order.*");
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    sandbox.ok(["relay", "--once"]);
    let arrived = || crate::sandbox::lines(&file).len();
    assert_eq!((arrived(), &stats(&sandbox)["dead"]), (0, &json!(0)));
    assert_eq!(sandbox.json(&["resume", "topic", "order.*"])["changed"], true);
    sandbox.ok(["relay", "--once"]);
    assert_eq!(arrived(), 1);
    assert_eq!(sandbox.json(&["resume", "topic", "order.*"])["changed"], false);
}

fn after_an_outage_only_what_it_stopped_becomes_due(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure(FULL);
    let stopped = sandbox.emit(&["order.placed", "--payload", "{}"]);
    let planned = sandbox.emit(&["order.due", "--payload", "{}", "--delay", "7d"]);
    sandbox.emit(&["order.ready", "--payload", "{}", "--key", "k"]);
    sandbox.ok(["pause", "topic", "order.ready"]);
    sandbox.ok(["relay", "--once"]);
    let due = |id: &str| sandbox.json(&["show", id])["deliveries"][0]["due_at"].clone();
    let (before, planned_for) = (due(&stopped), due(&planned));
    for command in [&["retry"][..], &["retry", "--reset"]] {
        let counted = sandbox.json(&[command, &["--topic", "order.placed", "--dry-run"]].concat());
        assert_eq!(counted, json!({"would_retry": 1}), "{command:?}");
        let due = sandbox.json(&[command, &["--topic", "order.due"]].concat());
        assert_eq!(due, json!({"retried": 0}), "{command:?}");
    }
    let all = sandbox.json(&["retry", "--all", "--dry-run"])["would_retry"].clone();
    assert_eq!(all, 2, "stopped messages, not scheduled ones");
    assert_eq!(
        sandbox.json(&["retry", "--all"])["retried"],
        all,
        "as many as were counted"
    );
    assert_ne!(due(&stopped), before);
    assert_eq!(due(&planned), planned_for);
    assert_eq!(sandbox.json(&["retry", "--all"]), json!({"retried": 0}), "they are due");
    // Their error is removed, although they are already due.
    assert_eq!(
        sandbox.json(&["retry", "--reset", "--all", "--dry-run"]),
        json!({"would_retry": 2})
    );
    assert_eq!(sandbox.json(&["retry", "--reset", "--all"]), json!({"retried": 2}));
    assert_eq!(due(&planned), planned_for);
    let planned_too = ["retry", "--topic", "order.due", "--scheduled"];
    assert_eq!(
        sandbox.json(&[&planned_too[..], &["--dry-run"]].concat()),
        json!({"would_retry": 1})
    );
    assert_eq!(sandbox.json(&planned_too), json!({"retried": 1}));
    assert_ne!(due(&planned), planned_for);
    let refused = sandbox.run(["retry", "--all", "--older-than", "1h"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

fn a_message_named_by_its_id_becomes_due_and_an_unknown_one_is_missing(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let planned = sandbox.emit(&["t", "--payload", "{}", "--delay", "7d"]);
    let unknown = "00000000-0000-7000-8000-000000000000";
    for command in [&["retry", unknown][..], &["retry", "--reset", unknown]] {
        sandbox
            .run(command)
            .fails_with_reason(5, &["none of these messages", "sendoff show"]);
    }
    assert_eq!(
        sandbox.json(&["retry", &planned, "--dry-run"]),
        json!({"would_retry": 1})
    );
    assert_eq!(sandbox.json(&["retry", &planned]), json!({"retried": 1}));
    sandbox.run(["retry", &planned]).fails(5, &["due already"]);
    sandbox
        .run(["retry", "--reset", "--scheduled"])
        .fails(2, &["no messages are selected"]);
}

/// Three messages of the key `k` for a sink that rejects the first: it is dead, and the others are blocked.
fn blocked(sandbox: &Sandbox) -> Vec<String> {
    let (refusing, _requests) = server("400 Bad Request");
    sandbox.configure(&hook(refusing));
    let emit = |_| sandbox.emit(&["t", "--payload", "{}", "--key", "k"]);
    let ids = (0..3).map(emit).collect();
    sandbox.ok(["relay", "--once"]);
    ids
}

fn a_blocked_key_is_seen_and_released(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let head = blocked(&sandbox)[0].clone();
    let keys = sandbox.json(&["keys", "ls"]);
    let key = &keys["items"][0];
    assert_eq!(
        (&key["key"], &key["sink"], &key["blocked"]),
        (&json!("k"), &json!("hook"), &json!(2)),
        "{keys}"
    );
    assert_eq!((&key["state"], &key["head"]), (&json!("dead"), &json!(head)), "{keys}");
    assert!(sandbox.ok(["keys", "ls"]).out.contains(&head));
    sandbox
        .run(["keys", "release", "another"])
        .fails(5, &["no dead letter blocks the key"]);
    sandbox
        .run(["keys", "release", "k", "--sink", "another"])
        .fails(5, &["no dead letter blocks the key"]);
    assert_eq!(
        sandbox.json(&["keys", "release", "k", "--sink", "hook"]),
        json!({"released": 1})
    );
    let (taking, _requests) = server("200 OK");
    sandbox.configure(&hook(taking));
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!(report["delivered"], 2, "its followers continued: {report}");
    assert_eq!(sandbox.json(&["show", &head])["status"], "dead", "it stays");
    assert_eq!(sandbox.json(&["keys", "ls"])["items"], json!([]));
    sandbox
        .run(["keys", "release", "k"])
        .fails(5, &["no dead letter blocks the key"]);
}

fn dead_letters_are_discarded_only_when_they_are_named(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure(NOWHERE);
    let first = sandbox.emit(&["order.placed", "--payload", "{}"]);
    sandbox.emit(&["order.paid", "--payload", "{}"]);
    sandbox.ok(["relay", "--once"]);
    assert_eq!(stats(&sandbox)["dead"], 2);
    sandbox
        .run(["dead", "discard"])
        .fails(2, &["no dead letters are selected"]);
    assert_eq!(
        sandbox.json(&["dead", "discard", "--all", "--dry-run"]),
        json!({"would_discard": 2})
    );
    assert_eq!(sandbox.json(&["dead", "discard", &first]), json!({"discarded": 1}));
    sandbox
        .run(["dead", "discard", &first])
        .fails(5, &["none of these is a dead letter"]);
    assert_eq!(
        sandbox.json(&["dead", "retry", "--topic", "order.*"]),
        json!({"retried": 1})
    );
    assert_eq!(
        (&stats(&sandbox)["dead"], &stats(&sandbox)["waiting"]),
        (&json!(0), &json!(1))
    );
}

/// Makes rows of a table older by this many hours.
fn age(sandbox: &Sandbox, table: &str, column: &str, hours: u32, id: Option<&str>) {
    let earlier = match &sandbox.place {
        TestDatabase::Sqlite(_) => format!("{column} - {hours} * 3600000000"),
        TestDatabase::Postgres { .. } => format!("{column} - {hours} * interval '1 hour'"),
        TestDatabase::Mysql { .. } => format!("{column} - INTERVAL {hours} HOUR"),
    };
    let which = id.map_or_else(String::new, |id| format!(" WHERE id = '{id}'"));
    sandbox.sql(&format!("UPDATE {table} SET {column} = {earlier}{which}"));
}

fn dead_letters_are_chosen_by_their_age(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure(NOWHERE);
    let old = sandbox.emit(&["t", "--payload", "{}"]);
    let young = sandbox.emit(&["t", "--payload", "{}"]);
    sandbox.ok(["relay", "--once"]);
    age(&sandbox, "outbox_dead", "created_at", 2, Some(&old));
    let listed = |args: &[&str]| {
        let list = sandbox.json(&[&["dead", "ls"], args].concat());
        let messages = list["items"].as_array().unwrap().clone();
        let ids = messages
            .iter()
            .map(|message| message["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<String>>()
    };
    assert_eq!(listed(&["--older-than", "1h"]), [&*old]);
    assert_eq!(listed(&["--newer-than", "1h"]), [&*young]);
    assert_eq!(listed(&["--filter", "created_until=1h"]), [&*old]);
    assert_eq!(listed(&["--filter", "created_from=1h"]), [&*young]);
    for verb in ["retry", "discard"] {
        for age in ["--older-than", "--newer-than"] {
            let all = sandbox.run(["dead", verb, "--all", age, "1h"]);
            assert_eq!(all.code, 2, "{all:?}");
            let counted = sandbox.json(&["dead", verb, age, "1h", "--dry-run"]);
            assert_eq!(counted[format!("would_{verb}")], 1);
        }
    }
    assert_eq!(stats(&sandbox)["dead"], 2);
    assert_eq!(
        sandbox.json(&["dead", "retry", "--older-than", "1h"]),
        json!({"retried": 1})
    );
    assert_eq!(listed(&[]), [&*young]);
    assert_eq!(
        sandbox.json(&["dead", "discard", "--newer-than", "1h"]),
        json!({"discarded": 1})
    );
    assert_eq!(stats(&sandbox)["dead"], 0);
}

fn lanes_and_leases_are_shown(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    let lanes = sandbox.json(&["lanes"]);
    let lanes = lanes["items"].as_array().unwrap();
    assert_eq!(lanes.len(), 80);
    assert_eq!(lanes.iter().filter_map(|lane| lane["ready"].as_u64()).sum::<u64>(), 1);
    assert!(lanes.iter().all(|lane| lane["relay"].is_null()));
    assert_eq!(sandbox.json(&["reap"]), json!({"lanes_freed": 0, "jobs_reaped": 0}));
}

fn clean_up_takes_what_is_old_enough(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    blocked(&sandbox);
    sandbox.configure(NOWHERE);
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    sandbox.ok(["relay", "--once"]);
    sandbox.run(["cleanup"]).fails(2, &["nothing is selected to clean up"]);
    assert_eq!(
        sandbox.json(&["cleanup", "--dead", "1h"]),
        json!({"deleted": 0, "remaining": 2})
    );
    assert_eq!(
        sandbox.json(&["cleanup", "--dead", "0s"]),
        json!({"deleted": 1, "remaining": 1}),
        "one blocks its key"
    );
    assert_eq!(stats(&sandbox)["dead"], 1);
    assert_eq!(sandbox.ok(["cleanup", "--dead", "0s"]).out, "0 deleted, 1 remaining\n");
}

fn delivered_messages_are_seen_and_counted_by_sink(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let (good, copy) = (sandbox.path("good.jsonl"), sandbox.path("copy.jsonl"));
    let config = |copy: &std::path::Path| {
        sandbox.configure(&format!(
            "retention = \"7d\"\n\
             [[sink]]\nname = \"good\"\ntype = \"file\"\npath = {good:?}\nfsync = false\n\
             [[sink]]\nname = \"copy\"\ntype = \"file\"\npath = {copy:?}\nfsync = false\n\
             [[route]]\nmatch = \"*\"\nto = [\"good\", \"copy\"]\n"
        ));
    };
    config(&copy);
    let together = sandbox.emit(&["t", "--payload", "{}"]);
    assert_eq!(sandbox.json(&["relay", "--once"])["delivered"], 2);
    // A full disk takes the sink down: that is no attempt, so nothing is retried.
    config(std::path::Path::new("/dev/full"));
    sandbox.emit(&["t", "--payload", "{}"]);
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!(
        (&report["delivered"], &report["retried"]),
        (&json!(1), &json!(0)),
        "{report}"
    );
    assert!(report["deferred"].as_u64().unwrap() >= 1, "{report}");
    let counts = stats(&sandbox);
    assert_eq!((&counts["delivered"], &counts["waiting"]), (&json!(3), &json!(1)));
    assert_eq!(counts["total"], 4, "the lines of ls");
    assert_eq!(sandbox.json(&["ls"])["items"].as_array().unwrap().len(), 4);
    for (sink, lines) in [("good", 2), ("copy", 1)] {
        let listed = sandbox.json(&["ls", "--status", "delivered", "--filter", &format!("sink={sink}")]);
        assert_eq!(listed["items"].as_array().unwrap().len(), lines, "{listed}");
        assert_eq!(listed["items"][0]["deliveries"][0]["sink"], sink);
    }
    let shown = sandbox.json(&["show", &together]);
    let sinks: Vec<&Value> = shown["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|delivery| &delivery["sink"])
        .collect();
    assert_eq!(sinks, ["copy", "good"]);
    assert!(sandbox.ok(["stats"]).out.contains("deliveries"));
}

fn clean_up_takes_delivered_messages_in_batches_as_one_command(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let file = sandbox.path("out.jsonl");
    sandbox.configure(&format!(
        "retention = \"7d\"\n[[sink]]\nname = \"out\"\ntype = \"file\"\npath = {file:?}\nfsync = false\n\
         [[route]]\nmatch = \"*\"\nto = [\"out\"]\n"
    ));
    sandbox.emit(&["t", "--payload", "{}", "--count", "2003"]);
    sandbox.ok(["relay", "--once"]);
    assert_eq!(stats(&sandbox)["delivered"], 2003);
    assert_eq!(
        sandbox.json(&["cleanup", "--delivered", "1h"]),
        json!({"deleted": 0, "remaining": 2003})
    );
    assert_eq!(
        sandbox.json(&["cleanup", "--delivered", "0s"]),
        json!({"deleted": 2003, "remaining": 0})
    );
    assert_eq!(stats(&sandbox)["delivered"], 0);
    let audit = sandbox.json(&["audit"]);
    let noted: Vec<_> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["action"].as_str().unwrap(), row["affected"].as_u64().unwrap()))
        .collect();
    assert_eq!(noted, [("cleanup", 2003), ("cleanup", 0)]);
}

fn clean_up_takes_idempotency_keys_whose_window_has_passed(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let emit = ["emit", "t", "--payload", "{}", "--idempotency-key", "req-1"];
    assert_eq!(sandbox.json(&emit)["duplicate"], false);
    assert_eq!(
        sandbox.json(&["cleanup", "--dedup"]),
        json!({"deleted": 0, "remaining": 1})
    );
    assert_eq!(sandbox.json(&emit)["duplicate"], true);
    age(&sandbox, "outbox_dedup", "until", 24 * 8, None);
    assert_eq!(
        sandbox.json(&["cleanup", "--dedup"]),
        json!({"deleted": 1, "remaining": 0})
    );
    assert_eq!(sandbox.json(&emit)["duplicate"], false);
}

fn every_change_is_in_the_audit(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let ids = blocked(&sandbox);
    for args in [
        &["pause", "sink", "hook"][..],
        &["resume", "sink", "hook"],
        &["keys", "release", "k"],
        &["dead", "retry", &ids[0]],
        &["dead", "discard", "--topic", "t"],
        &["retry", "--all"],
        &["retry", "--reset", "--key", "k", "--scheduled"],
        &["reap", "--stale-after", "90s"],
        &["cleanup", "--dead", "90d", "--dedup"],
    ] {
        sandbox.ok(args);
    }
    // Counting changes nothing.
    sandbox.ok(["dead", "retry", "--all", "--dry-run"]);
    sandbox.ok(["retry", "--all", "--dry-run"]);
    let audit = sandbox.json(&["audit"]);
    let rows = audit["items"].as_array().unwrap();
    let noted: Vec<(&str, u64, &Value)> = rows
        .iter()
        .rev()
        .map(|row| {
            (
                row["action"].as_str().unwrap(),
                row["affected"].as_u64().unwrap(),
                &row["filter"],
            )
        })
        .collect();
    let retention = json!({"delivered_seconds": null, "dead_seconds": 7776000.0, "dedup": true, "inbox_seconds": null});
    assert_eq!(
        noted,
        [
            ("pause", 1, &json!({"sink": "hook"})),
            ("resume", 1, &json!({"sink": "hook"})),
            ("keys release", 1, &json!({"key": "k"})),
            ("dead retry", 1, &json!({"ids": [ids[0]]})),
            ("dead discard", 0, &json!({"topic": "t"})),
            ("retry", 0, &json!({})),
            ("retry --reset", 1, &json!({"key": "k", "scheduled": true})),
            ("reap", 0, &json!({"stale_after_seconds": 90.0})),
            ("cleanup", 0, &retention),
        ]
    );
    let has_logins = !matches!(sandbox.place, TestDatabase::Sqlite(_));
    for row in rows {
        assert_eq!(
            row["login"].as_str().is_some_and(|login| !login.is_empty()),
            has_logins,
            "{row}"
        );
        assert!(row["who"].as_str().is_some_and(|who| who.contains('@')), "{row}");
        assert!(row["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{row}");
    }
    let told = sandbox.ok(["audit", "--limit", "1"]).out;
    assert!(told.contains("cleanup") && !told.contains("pause"), "{told}");
}
