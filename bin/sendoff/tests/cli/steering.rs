//! `stats`, `retry`, `reset`, `dead discard`, `keys`, `pause`, `lanes`, `reap`, `cleanup` and `audit`, on every database.

use serde_json::{Value, json};

use crate::on_every_database;
use crate::sandbox::Sandbox;

on_every_database! {
    a_full_disk_fills_the_waiting_table_and_nothing_is_lost
    a_topic_that_is_paused_waits_and_goes_on_when_it_is_resumed
    a_blocked_key_is_seen_and_released
    dead_letters_are_discarded_only_when_they_are_named
    lanes_and_leases_are_shown
    clean_up_takes_what_is_old_enough
    every_change_is_in_the_audit
}

const FULL: &str = "[[sink]]\nname = \"full\"\ntype = \"file\"\npath = \"/dev/full\"\nfsync = false\n\
                    [[route]]\nmatch = \"*\"\nto = [\"full\"]\n";

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
    assert_eq!(
        (&stats(&sandbox)["waiting"], &stats(&sandbox)["failed"]),
        (&json!(3), &json!(0))
    );
    let keys = sandbox.json(&["keys", "ls"]);
    assert_eq!(
        (&keys["keys"][0]["key"], &keys["keys"][0]["held"]),
        (&json!("k"), &json!(2))
    );
    assert_eq!(keys["keys"][0]["state"], "down");
    // Only the head can be made due: those behind it keep their order.
    sandbox.ok(["reset", "--key", "k"]);
    assert_eq!(stats(&sandbox)["waiting"], 3);
    sandbox.run(["retry"]).fails(2, &["no messages are named"]);
}

fn a_topic_that_is_paused_waits_and_goes_on_when_it_is_resumed(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let file = sandbox.configure_file_sink("");
    assert_eq!(sandbox.json(&["pause", "topic", "order.*"])["changed"], true);
    assert_eq!(sandbox.json(&["pause", "topic", "order.*"])["changed"], false);
    assert_eq!(sandbox.json(&["pause"])["pauses"][0]["name"], "order.*");
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    sandbox.ok(["relay", "--once"]);
    let arrived = || crate::sandbox::lines(&file).len();
    assert_eq!((arrived(), &stats(&sandbox)["dead"]), (0, &json!(0)));
    assert_eq!(sandbox.json(&["resume", "topic", "order.*"])["changed"], true);
    sandbox.ok(["relay", "--once"]);
    assert_eq!(arrived(), 1);
    assert_eq!(sandbox.json(&["resume", "topic", "order.*"])["changed"], false);
}

fn a_blocked_key_is_seen_and_released(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox
        .run(["keys", "release", "k"])
        .fails(5, &["no dead letter blocks the key"]);
    assert_eq!(sandbox.json(&["keys", "ls"])["keys"], json!([]));
}

fn dead_letters_are_discarded_only_when_they_are_named(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure("[[sink]]\nname = \"out\"\ntype = \"stdout\"\n[[route]]\nmatch = \"other\"\nto = [\"out\"]\n");
    let first = sandbox.emit(&["order.placed", "--payload", "{}"]);
    sandbox.emit(&["order.paid", "--payload", "{}"]);
    sandbox.ok(["relay", "--once"]);
    assert_eq!(stats(&sandbox)["dead"], 2);
    sandbox
        .run(["dead", "discard"])
        .fails(2, &["no dead letters are named"]);
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

fn lanes_and_leases_are_shown(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    let lanes = sandbox.json(&["lanes"]);
    let lanes = lanes["lanes"].as_array().unwrap();
    assert_eq!(lanes.len(), 80);
    assert_eq!(lanes.iter().filter_map(|lane| lane["ready"].as_u64()).sum::<u64>(), 1);
    assert!(lanes.iter().all(|lane| lane["relay"].is_null()));
    assert_eq!(sandbox.json(&["reap"]), json!({"lanes_freed": 0, "items_reaped": 0}));
}

fn clean_up_takes_what_is_old_enough(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure("[[sink]]\nname = \"out\"\ntype = \"stdout\"\n[[route]]\nmatch = \"other\"\nto = [\"out\"]\n");
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    sandbox.ok(["relay", "--once"]);
    sandbox
        .run(["cleanup"])
        .fails(2, &["nothing is named to be cleaned up"]);
    assert_eq!(
        sandbox.json(&["cleanup", "--dead", "1h"]),
        json!({"deleted": 0, "remaining": 0})
    );
    assert_eq!(
        sandbox.json(&["cleanup", "--dead", "0s"]),
        json!({"deleted": 1, "remaining": 0})
    );
    assert_eq!(stats(&sandbox)["dead"], 0);
}

fn every_change_is_in_the_audit(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.ok(["pause", "sink", "audit"]);
    sandbox.ok(["resume", "sink", "audit"]);
    sandbox.ok(["reset", "--all"]);
    let audit = sandbox.json(&["audit"]);
    let rows = audit["audit"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(
        rows.iter()
            .all(|row| row["who"].as_str().is_some_and(|who| who.contains('@'))),
        "{rows:?}"
    );
    assert_eq!(rows[2]["action"], "pause");
}
