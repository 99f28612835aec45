//! `relay`, on every database.

use std::io::Read;
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::on_every_database;
use crate::sandbox::{Running, Sandbox, lines, wait_until};

on_every_database! {
    once_delivers_what_is_due_and_reports
    a_relay_delivers_until_sigterm_and_frees_its_lanes_at_once
    a_stop_waits_for_what_is_with_a_sink
    a_second_signal_ends_at_once
    a_sink_that_is_down_holds_messages_back_without_charging_them
    once_ends_with_an_error_when_a_table_is_gone
}

const PATIENCE: Duration = Duration::from_secs(30);

fn once_ends_with_an_error_when_a_table_is_gone(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure_file_sink("");
    sandbox.emit(&["order.placed", "--payload", "{}"]);
    sandbox.sql("ALTER TABLE outbox_waiting RENAME TO outbox_elsewhere");
    let ran = sandbox.run(["relay", "--once"]);
    assert!(ran.err.contains("outbox_waiting"), "{}", ran.err);
    assert_ne!(ran.code, 0, "{}", ran.err);
}

fn once_delivers_what_is_due_and_reports(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let out = sandbox.configure_file_sink("");
    let first = sandbox.emit(&[
        "order.placed",
        "--payload",
        "{\"n\": 1}",
        "--key",
        "k",
        "--header",
        "a=b",
    ]);
    sandbox.emit(&["order.paid", "--payload", "{\"n\":2}", "--key", "k"]);
    sandbox.emit(&["later", "--payload", "{}", "--delay", "1h"]);
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!(
        report,
        json!({
            "processed": 2, "delivered": 2, "retried": 0, "deferred": 0, "dead": 0, "remaining": 1,
            "backlog": {"ready": 0, "due": 0, "waiting": 1, "dead": 0},
        })
    );
    let arrived = lines(&out);
    let order: Vec<&str> = arrived.iter().map(|line| line["topic"].as_str().unwrap()).collect();
    assert_eq!(order, ["order.placed", "order.paid"]);
    assert_eq!(arrived[0]["id"], first);
    assert_eq!(arrived[0]["payload"], json!({"n": 1}));
    assert_eq!(arrived[0]["headers"], json!({"a": "b"}));
    let ran = sandbox.ok(["relay", "--once"]);
    assert!(
        ran.out.starts_with("processed 0: ") && ran.out.contains("remaining rows 1: "),
        "{ran:?}"
    );
    assert_eq!(lines(&out).len(), 2);
}

/// A relay whose log goes to a file, so that nothing blocks on a full pipe.
fn relay(sandbox: &Sandbox, log: &str) -> Running {
    let log = std::fs::File::create(sandbox.path(log)).unwrap();
    Running::start(sandbox.command(["relay"]).stdout(Stdio::null()).stderr(log))
}

fn a_relay_delivers_until_sigterm_and_frees_its_lanes_at_once(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    // With a lease this long, another relay can only continue after a clean stop.
    let out = sandbox.configure_file_sink("[relay]\nlease = \"10m\"\nheartbeat = \"100ms\"\n");
    let mut first = relay(&sandbox, "first.log");
    sandbox.emit(&["t", "--payload", "1", "--key", "k"]);
    wait_until("the first relay has delivered", PATIENCE, || lines(&out).len() == 1);
    first.signal(Signal::TERM);
    let status = first.end(Duration::from_secs(25));
    assert_eq!(status.code(), Some(0), "{}", sandbox.read("first.log"));

    let mut second = relay(&sandbox, "second.log");
    sandbox.emit(&["t", "--payload", "2", "--key", "k"]);
    wait_until("the second relay has delivered", PATIENCE, || lines(&out).len() == 2);
    second.signal(Signal::INT);
    assert_eq!(second.end(Duration::from_secs(25)).code(), Some(0));
    assert_eq!(sandbox.json(&["relay", "--once"])["remaining"], 0);
}

/// A relay whose sink has started to write a message into a pipe that is not read: the message is larger than a pipe,
/// so the sink waits.
fn relay_in_the_middle_of_a_message(sandbox: &Sandbox) -> (Running, ChildStdout) {
    sandbox.configure("[[sink]]\nname = \"out\"\ntype = \"stdout\"\n[[route]]\nmatch = \"*\"\nto = [\"out\"]\n");
    let log = std::fs::File::create(sandbox.path("relay.log")).unwrap();
    let mut relay = Running::start(sandbox.command(["relay"]).stdout(Stdio::piped()).stderr(log));
    sandbox.write("payload", &format!("\"{}\"", "x".repeat(500_000)));
    sandbox.emit(&["t", "--payload-file", "payload"]);
    let mut pipe = relay.0.stdout.take().unwrap();
    let (begun, writing) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        pipe.read_exact(&mut [0]).unwrap();
        begun.send(pipe).unwrap();
    });
    (relay, writing.recv_timeout(PATIENCE).unwrap())
}

fn a_stop_waits_for_what_is_with_a_sink(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let (mut relay, mut pipe) = relay_in_the_middle_of_a_message(&sandbox);
    relay.signal(Signal::TERM);
    wait_until("it has begun to stop", PATIENCE, || {
        sandbox.read("relay.log").contains("relay_stopping")
    });
    let mut rest = String::new();
    pipe.read_to_string(&mut rest).unwrap();
    assert!(rest.len() > 500_000 && rest.ends_with("}\n"), "{}", rest.len());
    assert_eq!(
        relay.end(Duration::from_secs(25)).code(),
        Some(0),
        "{}",
        sandbox.read("relay.log")
    );
    assert_eq!(
        sandbox.json(&["ls"])["items"],
        json!([]),
        "what was delivered is settled"
    );
}

fn a_second_signal_ends_at_once(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let (mut relay, _unread) = relay_in_the_middle_of_a_message(&sandbox);
    relay.signal(Signal::TERM);
    wait_until("it has begun to stop", PATIENCE, || {
        sandbox.read("relay.log").contains("SIGTERM")
    });
    let begin = Instant::now();
    relay.signal(Signal::TERM);
    assert_eq!(relay.end(PATIENCE).code(), Some(143), "{}", sandbox.read("relay.log"));
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert_eq!(
        sandbox.json(&["ls"])["items"].as_array().unwrap().len(),
        1,
        "it is delivered again"
    );
}

fn a_sink_that_is_down_holds_messages_back_without_charging_them(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let out = sandbox.configure_file_sink("");
    let working = sandbox.read("sendoff.toml");
    sandbox.write("sendoff.toml", &working.replace("out.jsonl", "no/folder/out.jsonl"));
    let id = sandbox.emit(&["t", "--payload", "{}"]);
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!((&report["delivered"], &report["remaining"]), (&json!(0), &json!(1)));
    let sink = &sandbox.json(&["show", &id])["deliveries"][0];
    assert_eq!((&sink["attempts"], &sink["detail"]), (&json!(0), &json!("deferred")));
    sandbox.write("sendoff.toml", &working);
    let _relay = relay(&sandbox, "relay.log");
    wait_until("it is delivered", PATIENCE, || lines(&out).len() == 1);
}

#[test]
fn a_relay_waits_for_a_database_that_is_away_and_stops_when_told() {
    let sandbox = Sandbox::sqlite();
    sandbox.configure_file_sink("");
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("postgres://shop:hunter2@127.0.0.1:{port}/shop");
    let log = std::fs::File::create(sandbox.path("log")).unwrap();
    let mut relay = Running::start(sandbox.command(["relay", "--database", &url]).stderr(log));
    wait_until("it says that it waits", PATIENCE, || {
        sandbox.read("log").contains("database unreachable")
    });
    relay.signal(Signal::TERM);
    assert_eq!(relay.end(PATIENCE).code(), Some(0));
    assert!(!sandbox.read("log").contains("hunter2"));
}

#[test]
fn log_lines_are_json_when_configured_so() {
    let sandbox = Sandbox::sqlite().migrated();
    sandbox.configure_file_sink("[log]\nformat = \"json\"\n");
    let ran = sandbox.ok(["relay", "--once"]);
    let events: Vec<serde_json::Value> = ran
        .err
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(events.iter().any(|event| event["event"] == "relay_started"), "{ran:?}");
    let quiet = sandbox.ok(["relay", "--once", "--log-level", "warn"]);
    assert_eq!(quiet.err, "");
}
