//! `status`, on every database.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::on_every_database;
use crate::sandbox::{Running, Sandbox, lines};

on_every_database! {
    without_a_relay_the_verdict_depends_on_what_waits
    a_sink_that_is_down_is_named_with_what_it_keeps_waiting
    a_paused_sink_is_named_with_who_paused_it
    what_flows_is_ok_and_dead_letters_are_a_warning
    two_relays_are_shown_with_their_lanes_and_a_differing_configuration
}

const PATIENCE: Duration = Duration::from_secs(40);

const FULL: &str = "[[sink]]\nname = \"full\"\ntype = \"file\"\npath = \"/dev/full\"\nfsync = false\n\
                    [[route]]\nmatch = \"*\"\nto = [\"full\"]\n";

/// A relay whose log goes to a file, so that nothing blocks on a full pipe.
pub(crate) fn relay(sandbox: &Sandbox, args: &[&str], log: &str) -> Running {
    let log = std::fs::File::create(sandbox.path(log)).unwrap();
    let mut command = sandbox.command(["relay"].iter().chain(args));
    Running::start(command.stdout(Stdio::null()).stderr(log))
}

/// The status and the exit code, which have to agree.
#[track_caller]
pub(crate) fn status(sandbox: &Sandbox) -> Value {
    let ran = sandbox.run(["status", "--json"]);
    let view = ran.json();
    let code = match view["level"].as_str() {
        Some("ok") => 0,
        Some("warning") => 7,
        Some("critical") => 8,
        _ => panic!("{view:#}"),
    };
    assert_eq!(ran.code, code, "{ran:?}");
    view
}

/// Waits for a status that fits, and returns it.
#[track_caller]
pub(crate) fn wait_for(what: &str, sandbox: &Sandbox, fits: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let view = status(sandbox);
        if fits(&view) {
            return view;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}: {view:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn verdict(view: &Value) -> &str {
    view["verdict"].as_str().unwrap()
}

fn without_a_relay_the_verdict_depends_on_what_waits(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let view = status(&sandbox);
    assert_eq!(
        (verdict(&view), &view["level"]),
        ("no relay is alive; nothing waits", &json!("warning"))
    );
    assert_eq!(view["lanes"]["free"].as_array().unwrap().len(), 80);
    sandbox.emit(&["order.placed", "--payload", "{}", "--count", "2"]);
    sandbox.emit(&["later", "--payload", "{}", "--delay", "1h"]);
    let view = status(&sandbox);
    assert_eq!(
        (verdict(&view), &view["level"]),
        ("no relay is alive, 2 messages wait", &json!("critical"))
    );
    assert_eq!(
        (&view["pending"]["count"], &view["scheduled"]["count"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(view["topics"][0]["topic"], "order.placed");
    assert!(view["pending"]["oldest_seconds"].as_f64().unwrap() >= 0.0, "{view:#}");
    // A restored backup has relays of the past: they are seen as gone.
    let past = match &sandbox.place {
        crate::sandbox::TestDatabase::Sqlite(_) => "1000000",
        crate::sandbox::TestDatabase::Postgres { .. } | crate::sandbox::TestDatabase::Mysql { .. } => {
            "'2020-01-01 00:00:00'"
        }
    };
    sandbox.sql(&format!(
        "INSERT INTO outbox_relay (owner, name, version, config, routes, until, lease) VALUES \
         ('0197a3c4-0000-7000-8000-000000000001', 'old-1', '0.1.0', 'c', '[]', {past}, 10000000)"
    ));
    let view = status(&sandbox);
    assert!(
        verdict(&view).starts_with("no relay is alive, the last one was seen ")
            && verdict(&view).ends_with("2 messages wait"),
        "{view:#}"
    );
    assert_eq!(view["relays"][0]["alive"], false);
    assert!(sandbox.run(["status"]).out.contains("old-1  gone, last beat "));
}

fn a_sink_that_is_down_is_named_with_what_it_keeps_waiting(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure(FULL);
    sandbox.emit(&["order.placed", "--payload", "{}", "--count", "30"]);
    sandbox.emit(&["order.paid", "--payload", "{}", "--key", "k"]);
    sandbox.emit(&["order.paid", "--payload", "{}", "--key", "k"]);
    let _relay = relay(&sandbox, &[], "relay.log");
    let view = wait_for("the sink is down", &sandbox, |view| {
        let sink = &view["sinks"][0];
        sink["state"] == "down" && sink["deferred"]["count"] == 31 && view["blocked_keys"]["count"] == 1
    });
    assert!(verdict(&view).starts_with("full is down for "), "{view:#}");
    assert!(verdict(&view).contains(", 31 deliveries deferred"), "{view:#}");
    assert!(verdict(&view).contains("; 1 key blocked"), "{view:#}");
    let sink = &view["sinks"][0];
    assert!(
        sink["down_since"].is_string() && sink["next_probe_seconds"].is_number(),
        "{view:#}"
    );
    assert!(sink["last_error"].as_str().unwrap().contains("space"), "{view:#}");
    assert_eq!(
        (&sink["backlog"]["count"], &sink["blocked"]["count"]),
        (&json!(32), &json!(1))
    );
    let text = sandbox.run(["status"]).out;
    for words in [
        "full is down for ",
        "31 deferred",
        "next probe in",
        "last error",
        "keys",
        "1 blocked",
    ] {
        assert!(text.contains(words), "{words:?} in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

fn a_paused_sink_is_named_with_who_paused_it(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let out = sandbox.configure_file_sink("");
    sandbox.ok(["pause", "sink", "out"]);
    sandbox.ok(["pause", "topic", "secret.*"]);
    sandbox.emit(&["order.placed", "--payload", "{}", "--count", "3"]);
    let _relay = relay(&sandbox, &[], "relay.log");
    // The only sink is paused, so the relay does not even read.
    let view = wait_for("there are figures", &sandbox, |view| {
        view["sinks"][0]["backlog"]["count"] == 3
            && view["relays"][0]["rates"].is_object()
            && view["lanes"]["free"] == json!([])
    });
    assert_eq!(
        (&view["level"], &view["sinks"][0]["state"]),
        (&json!("warning"), &json!("paused"))
    );
    assert!(verdict(&view).starts_with("out is paused by "), "{view:#}");
    assert!(
        verdict(&view).contains(", 3 messages wait; the topic secret.* is paused by "),
        "{view:#}"
    );
    sandbox.ok(["resume", "sink", "out"]);
    sandbox.ok(["resume", "topic", "secret.*"]);
    let view = wait_for("everything is delivered", &sandbox, |view| {
        view["level"] == "ok" && view["sinks"][0]["delivered"] == 3
    });
    assert_eq!((lines(&out).len(), &view["backlog"]["count"]), (3, &json!(0)));
}

fn what_flows_is_ok_and_dead_letters_are_a_warning(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let out: PathBuf = sandbox.path("out.jsonl");
    sandbox.configure(&format!(
        "[[sink]]\nname = \"out\"\ntype = \"file\"\npath = {out:?}\n[[route]]\nmatch = \"order.*\"\nto = [\"out\"]\n"
    ));
    let _relay = relay(&sandbox, &[], "relay.log");
    // The first figures are written a second after the start: what comes then is in the rates.
    wait_for("there are figures", &sandbox, |view| {
        view["relays"][0]["rates"].is_object()
    });
    sandbox.emit(&["order.placed", "--payload", "{}", "--count", "50"]);
    let view = wait_for("the rates show it", &sandbox, |view| {
        view["sinks"][0]["delivered"] == 50 && view["rates"]["delivered"].as_f64() > Some(0.0)
    });
    assert_eq!(view["level"], "ok", "{view:#}");
    assert!(view["rates"]["read"].as_f64().unwrap() > 0.0, "{view:#}");
    assert!(verdict(&view).ends_with("nothing waits, 1 relay"), "{view:#}");
    sandbox.emit(&["nowhere", "--payload", "{}"]);
    let view = wait_for("it is a dead letter", &sandbox, |view| view["dead"]["count"] == 1);
    assert_eq!((verdict(&view), &view["level"]), ("1 dead letter", &json!("warning")));
    assert_eq!(view["dead"]["reasons"], json!({"unroutable": 1}));
    let text = sandbox.run(["status"]).out;
    assert!(text.starts_with("warning: 1 dead letter\n"), "{text}");
    assert!(text.contains("1: 1 unroutable (sendoff dead ls)"), "{text}");
}

fn two_relays_are_shown_with_their_lanes_and_a_differing_configuration(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure_file_sink("[relay]\nlease = \"2s\"\nheartbeat = \"200ms\"\n");
    let first = relay(&sandbox, &[], "first.log");
    let mut second = relay(&sandbox, &[], "second.log");
    let lanes = |view: &Value| {
        let relays = view["relays"].as_array().unwrap();
        relays
            .iter()
            .map(|relay| relay["lanes"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let view = wait_for("they share the lanes", &sandbox, |view| {
        lanes(view) == [40, 40] && view["level"] == "ok"
    });
    assert_eq!(verdict(&view), "nothing waits, 2 relays");
    second.signal(Signal::TERM);
    second.end(PATIENCE);
    let view = wait_for("one is left", &sandbox, |view| lanes(view) == [80]);
    assert_eq!(view["relays"].as_array().unwrap().len(), 1, "{view:#}");
    // Another configuration: a topic of its own.
    let other = sandbox.read("sendoff.toml") + "[[topic]]\nmatch = \"order.*\"\non_failure = \"skip\"\n";
    sandbox.write("other.toml", &other);
    let _other = relay(&sandbox, &["--config", "other.toml"], "other.log");
    let view = wait_for("they differ", &sandbox, |view| {
        view["relays"][1]["config_differs"] == true
    });
    assert!(
        verdict(&view).contains("relays have different configurations"),
        "{view:#}"
    );
    assert!(sandbox.run(["status"]).out.contains("(differs)"));
    // One that is killed is gone as soon as its lease is over.
    let name = view["relays"].as_array().unwrap().len();
    first.signal(Signal::KILL);
    let view = wait_for("one is gone", &sandbox, |view| {
        let relays = view["relays"].as_array().unwrap();
        relays.iter().filter(|relay| relay["alive"] == true).count() == 1 && view["level"] == "ok"
    });
    assert!(view["relays"].as_array().unwrap().len() < name, "{view:#}");
}

#[test]
fn an_interval_is_for_watching() {
    let sandbox = Sandbox::sqlite().migrated();
    assert_eq!(sandbox.run(["status", "--interval", "2"]).code, 2);
    assert_eq!(sandbox.run(["status", "--watch", "--interval", "0"]).code, 2);
}
