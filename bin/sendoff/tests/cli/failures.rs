//! `failures`, and commands on their groups.

use serde_json::{Value, json};

use crate::on_every_database;
use crate::sandbox::Sandbox;
use crate::sink::{hook, server};

on_every_database! {
    failures_are_grouped_and_a_group_is_retried
    a_group_in_retry_is_retried_by_retry
    a_sink_that_nobody_knows_is_named
}

/// Nothing but `other` has a route.
const NOWHERE: &str = "[[sink]]\nname = \"out\"\ntype = \"stdout\"\n[[route]]\nmatch = \"other\"\nto = [\"out\"]\n";

fn group(failure: &Value) -> &str {
    failure["group"].as_str().unwrap()
}

fn failures_are_grouped_and_a_group_is_retried(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure(NOWHERE);
    let ids = ["a", "b"].map(|topic| sandbox.emit(&[topic, "--payload", "{}"]));
    let late = sandbox.emit(&["a", "--payload", "{}", "--expires", "2020-01-01T00:00:00Z"]);
    sandbox.ok(["relay", "--once"]);
    let failures = sandbox.json(&["failures"]);
    assert_eq!(failures["items"].as_array().unwrap().len(), 2, "{failures}");
    let first = &failures["items"][0];
    assert_eq!((&first["count"], &first["at_least"]), (&json!(2), &json!(false)));
    assert_eq!((&first["reason"], &first["sink"]), (&json!("unroutable"), &json!(null)));
    assert!(ids.iter().any(|id| first["example"] == **id), "{first}");
    let expired = sandbox.json(&["failures", "--reason", "expired"]);
    assert_eq!(expired["items"][0]["example"], late);
    let shown = sandbox.ok(["failures"]).out;
    assert!(
        shown.starts_with("group\tcount\t") && shown.contains(group(first)),
        "{shown}"
    );

    let act = |verb: &str, more: &str| sandbox.json(&["dead", verb, "--group", group(first), more]);
    assert_eq!(act("retry", "--dry-run"), json!({"would_retry": 2}));
    assert_eq!(act("retry", "--yes"), json!({"retried": 2}));
    assert_eq!(
        sandbox.json(&["dead", "ls"])["items"][0]["id"],
        late,
        "others are left alone"
    );
    sandbox
        .run(["dead", "retry", "--group", group(first), "--yes"])
        .fails_with_reason(5, &["sendoff failures"]);
    let last = group(&expired["items"][0]).to_owned();
    assert_eq!(
        sandbox.json(&["dead", "discard", "--group", &last, "--yes"]),
        json!({"discarded": 1})
    );
    let audit = sandbox.json(&["audit"]);
    assert_eq!(audit["items"][0]["filter"]["group"], last);
    sandbox
        .run(["jobs", "retry", "--group", &last])
        .fails_with_reason(2, &["--group cannot be used with failed jobs"]);
}

fn a_group_in_retry_is_retried_by_retry(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let (failing, _requests) = server("500 Internal Server Error");
    sandbox.configure(&hook(failing));
    sandbox.emit(&["t", "--payload", "{}"]);
    sandbox.ok(["relay", "--once"]);
    let failures = sandbox.json(&["failures"]);
    let first = &failures["items"][0];
    assert_eq!((&first["status"], &first["count"]), (&json!("retry"), &json!(1)));
    assert!(first["error"].as_str().unwrap().contains("500"), "{first}");
    sandbox
        .run(["dead", "retry", "--group", group(first), "--yes"])
        .fails(2, &["sendoff retry --group"]);
    let counted = sandbox.json(&["retry", "--group", group(first), "--dry-run"]);
    assert_eq!(counted, json!({"would_retry": 1}));
    assert_eq!(
        sandbox.json(&["retry", "--group", group(first), "--yes"]),
        json!({"retried": 1})
    );
}

fn a_sink_that_nobody_knows_is_named(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure(NOWHERE);
    sandbox
        .run(["pause", "sink", "otu"])
        .fails_with_reason(2, &["otu", "did you mean out?"]);
    assert_eq!(sandbox.json(&["pause", "sink", "out"])["changed"], true);
    let listed = sandbox.ok(["ls", "--sink", "aut"]);
    assert!(listed.err.contains("did you mean out?"), "{listed:?}");
    let error = sandbox.run(["pause", "sink", "otu", "--json"]);
    let error: Value = serde_json::from_str(&error.err).unwrap();
    assert!(error["error"]["what"].as_str().unwrap().contains("otu"), "{error}");
    assert!(error["error"]["next"].as_str().unwrap().contains("out"), "{error}");
    let usage = sandbox.run(["ls", "--limit", "many", "--json"]);
    let told: Value = serde_json::from_str(&usage.err).unwrap();
    assert_eq!(usage.code, 2);
    assert!(told["error"]["what"].as_str().unwrap().contains("many"), "{told}");
}
