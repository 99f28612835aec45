//! One relay process serves several databases: one that is down, comes late, or dies does not delay the others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod sandbox;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use sandbox::{Running, Sandbox, TestDatabase, lines, wait_until};
use sendoff_testkit::{Fault, FaultProxy};
use serde_json::Value;
use tokio::runtime::Runtime;

const PATIENCE: Duration = Duration::from_secs(30);

/// A SQLite file and a PostgreSQL schema, the latter behind a proxy that can be cut; each delivers to its own file.
struct Two {
    sandbox: Sandbox,
    wire: FaultProxy,
    /// Keeps the proxy running.
    _runtime: Runtime,
    near: PathBuf,
    far: PathBuf,
}

impl Two {
    fn new() -> Self {
        let sandbox = Sandbox::postgres();
        let TestDatabase::Postgres { url, schema } = sandbox.place.clone() else {
            panic!("this test is about PostgreSQL");
        };
        let runtime = Runtime::new().unwrap();
        let port: u16 = port_of(&url);
        let wire = runtime.block_on(FaultProxy::start(port));
        let (near, far) = (sandbox.path("near.jsonl"), sandbox.path("far.jsonl"));
        let sink = |name: &str, path: &Path| format!("[[sink]]\nname = {name:?}\ntype = \"file\"\npath = {path:?}\n");
        sandbox.write(
            "sendoff.toml",
            &format!(
                "[[source]]\nname = \"near\"\nurl = \"sqlite:near.db\"\n\
                 [[source]]\nname = \"far\"\nurl = {:?}\nschema = {schema:?}\n\
                 [[source.route]]\nmatch = \"*\"\nto = [\"far-file\"]\n\
                 [[route]]\nmatch = \"*\"\nto = [\"near-file\"]\n\
                 [relay]\nlease = \"2s\"\nheartbeat = \"300ms\"\n[log]\nformat = \"json\"\n{}{}",
                wire.url(&url, port),
                sink("near-file", &near),
                sink("far-file", &far),
            ),
        );
        Self {
            sandbox,
            wire,
            _runtime: runtime,
            near,
            far,
        }
    }

    fn migrate(&self, source: &str) {
        self.sandbox.ok(["migrate", "--source", source]);
    }

    fn emit(&self, source: &str, number: &str) {
        self.sandbox
            .emit(&["order.placed", "--payload", number, "--source", source]);
    }

    fn relay(&self) -> Running {
        let log = std::fs::File::create(self.sandbox.path("log")).unwrap();
        Running::start(self.sandbox.command(["relay"]).stderr(log))
    }

    /// Waits for a log line with this event of this source; returns it.
    fn logged(&self, event: &str, source: &str) -> Value {
        let fits = |line: &Value| line["event"] == event && line["source"] == source;
        let mut found = None;
        wait_until(&format!("{event} of {source} is logged"), PATIENCE, || {
            found = lines(&self.sandbox.path("log")).into_iter().find(fits);
            found.is_some()
        });
        found.unwrap()
    }

    fn log(&self) -> String {
        self.sandbox.read("log")
    }
}

fn port_of(url: &str) -> u16 {
    let after_host = url.rsplit_once(':').unwrap().1;
    let digits: String = after_host.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

fn payloads(path: &Path) -> Vec<u64> {
    let mut numbers: Vec<u64> = lines(path)
        .iter()
        .map(|line| line["payload"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn arrives(path: &Path, numbers: &[u64]) {
    wait_until(&format!("{numbers:?} arrive"), PATIENCE, || payloads(path) == numbers);
}

#[test]
fn a_source_that_is_down_at_the_start_is_served_when_it_comes_up_and_one_that_dies_when_it_is_back() {
    let two = Two::new();
    two.migrate("near");
    two.migrate("far");
    two.emit("far", "1");
    two.wire.set(Fault::Refuse);
    let mut relay = two.relay();
    two.emit("near", "1");
    arrives(&two.near, &[1]);
    let down = two.logged("source_down", "far");
    assert!(down["error"].as_str().unwrap().contains("database"), "{down}");
    assert_eq!(payloads(&two.far), [0_u64; 0]);

    two.wire.set(Fault::Pass);
    arrives(&two.far, &[1]);
    two.logged("source_up", "far");

    two.wire.set(Fault::Refuse);
    two.emit("near", "2");
    arrives(&two.near, &[1, 2]);
    let speaks_of_far = |line: &Value| {
        let named = line["spans"][0]["source"] == "far";
        named && line["level"] == "WARN" && line["event"] != "source_down"
    };
    wait_until("the relay of the dead source says which it is", PATIENCE, || {
        lines(&two.sandbox.path("log")).iter().any(speaks_of_far)
    });
    two.wire.set(Fault::Pass);
    two.emit("far", "2");
    arrives(&two.far, &[1, 2]);
    two.emit("near", "3");
    arrives(&two.near, &[1, 2, 3]);

    relay.signal(Signal::TERM);
    assert_eq!(relay.end(PATIENCE).code(), Some(0), "{}", two.log());
    assert!(!two.log().contains("password"), "{}", two.log());
}

#[test]
fn a_source_without_tables_is_told_by_name_and_by_the_exit_code_while_the_other_is_served() {
    let two = Two::new();
    two.migrate("near");
    let mut relay = two.relay();
    two.emit("near", "1");
    arrives(&two.near, &[1]);
    let refused = two.logged("source_down", "far");
    assert_eq!(refused["level"], "ERROR", "{refused}");
    relay.signal(Signal::TERM);
    assert_eq!(relay.end(PATIENCE).code(), Some(4), "{}", two.log());
    assert!(two.log().contains("error: source far: "), "{}", two.log());

    // Once it has them, it is served without a restart.
    let mut relay = two.relay();
    two.logged("source_down", "far");
    two.migrate("far");
    two.emit("far", "1");
    arrives(&two.far, &[1]);
    relay.signal(Signal::TERM);
    assert_eq!(relay.end(PATIENCE).code(), Some(0), "{}", two.log());
}

#[test]
fn when_no_source_can_ever_be_served_it_ends() {
    let two = Two::new();
    let mut relay = two.relay();
    assert_eq!(relay.end(PATIENCE).code(), Some(4), "{}", two.log());
    assert!(two.log().contains("error: source near: "), "{}", two.log());
}

#[test]
fn once_tells_what_became_of_each_source() {
    let two = Two::new();
    two.migrate("near");
    two.migrate("far");
    two.emit("near", "1");
    two.emit("far", "1");
    two.emit("far", "2");
    let report = two.sandbox.json(&["relay", "--once"]);
    assert_eq!(report["sources"]["near"]["delivered"], 1, "{report}");
    assert_eq!(report["sources"]["far"]["delivered"], 2, "{report}");
    assert_eq!((payloads(&two.near), payloads(&two.far)), (vec![1], vec![1, 2]));

    two.wire.set(Fault::Refuse);
    two.emit("near", "2");
    let ran = two.sandbox.run(["relay", "--once", "--json"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let error: serde_json::Value = serde_json::from_str(ran.err.lines().last().unwrap()).unwrap();
    let what = error["error"]["what"].as_str().unwrap();
    assert!(
        what.starts_with("source far: ") && error["error"]["next"].is_string(),
        "{error}"
    );
    let report = ran.json();
    assert_eq!(report["sources"]["near"]["delivered"], 1, "{report}");
    assert!(report["sources"]["far"]["error"].is_string(), "{report}");
    assert_eq!(payloads(&two.near), [1, 2]);

    let one = two.sandbox.json(&["relay", "--once", "--source", "near"]);
    assert_eq!(one["sources"]["near"]["delivered"], 0, "{one}");
}

#[test]
fn a_command_asks_which_source_it_is_about() {
    let two = Two::new();
    two.migrate("near");
    two.sandbox
        .run(["stats"])
        .fails_with_reason(2, &["several databases", "--source near or --source far"]);
    two.sandbox
        .run(["stats", "--source", "fra"])
        .fails_with_reason(2, &["did you mean \"far\""]);
    two.emit("near", "1");
    assert_eq!(two.sandbox.json(&["stats", "--source", "near"])["ready"], 1);
    two.sandbox.run(["stats", "--source", "far"]).fails(4, &["migrate"]);
    assert_eq!(two.sandbox.json(&["config", "check"])["ok"], true);
    let both = two
        .sandbox
        .run(["stats", "--source", "near", "--database", "sqlite:a.db"]);
    assert_eq!(both.code, 2, "{both:?}");
}
