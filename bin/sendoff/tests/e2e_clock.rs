//! Relays on hosts whose clocks are an hour off: the database's clock decides, so nothing changes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod sandbox;

use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rustix::process::Signal;
use sandbox::{Running, Sandbox, TestDatabase, block_on, connect, lines, test_variable, wait_until};
use tokio_postgres::Row;

const KEYS: usize = 40;
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn host_clocks_an_hour_off_change_nothing() {
    let sandbox = Sandbox::postgres().migrated();
    std::fs::create_dir(sandbox.path("out")).unwrap();
    sandbox.configure(&format!(
        "[relay]\nlease = \"3s\"\nheartbeat = \"300ms\"\nidle_time = \"20ms\"\n\
         [[sink]]\nname = \"out\"\ntype = \"file\"\npath = {:?}\nfsync = false\n\
         [[route]]\nmatch = \"*\"\nto = [\"out\"]\n",
        sandbox.path("out/out.jsonl"),
    ));
    let ahead = relay(&sandbox, "+1h", "ahead.log", 3600);
    let behind = relay(&sandbox, "-1h", "behind.log", -3600);
    wait_until("they share the lanes", PATIENCE, || {
        lanes_of(&sandbox, &ahead) == 40 && lanes_of(&sandbox, &behind) == 40
    });

    deliver(&sandbox, 0);
    scheduled_messages_come_when_they_are_due(&sandbox);
    retries_wait_as_long_as_they_should(&sandbox);

    takes_over(&sandbox, &ahead, behind);
    let behind = relay(&sandbox, "-1h", "behind.log", -3600);
    wait_until("they share the lanes again", PATIENCE, || {
        lanes_of(&sandbox, &behind) == 40
    });
    takes_over(&sandbox, &behind, ahead);

    behind.signal(Signal::TERM);
    let mut behind = behind;
    assert_eq!(behind.end(PATIENCE).code(), Some(0));
}

#[test]
fn ages_in_filters_go_by_the_clock_of_the_database() {
    let sandbox = Sandbox::postgres().migrated();
    let id = sandbox.emit(&["clock", "--payload", "{}"]);
    for clock in ["+2h", "-2h"] {
        for (age, is_listed) in [("--newer-than", true), ("--older-than", false)] {
            let listed = under(&mut sandbox.command(["ls", "--json", age, "1h"]), clock)
                .output()
                .unwrap();
            let listed = String::from_utf8(listed.stdout).unwrap();
            assert_eq!(listed.contains(&id), is_listed, "{clock} {age}: {listed}");
        }
        let emit = ["emit", "t", "--payload", "{}", "--expires", "1h", "--json"];
        let emitted = under(&mut sandbox.command(emit), clock).output().unwrap();
        assert!(emitted.status.success(), "{emitted:?}");
    }
    let sql = "SELECT bool_and(expires_at BETWEEN now() + interval '50 minutes' AND now() + interval '1 hour') \
        FROM outbox_message WHERE topic = 't'";
    assert!(query(&sandbox, sql)[0].get::<_, bool>(0));
}

/// Runs a program under another clock.
fn under<'a>(command: &'a mut Command, clock: &str) -> &'a mut Command {
    command
        .env("LD_PRELOAD", test_variable("SENDOFF_TEST_FAKETIME_LIB"))
        .env("FAKETIME", clock)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

/// Starts a relay under another clock, and checks that it uses it.
fn relay(sandbox: &Sandbox, clock: &str, log: &str, offset: i64) -> Running {
    let file = std::fs::File::create(sandbox.path(log)).unwrap();
    let mut command = sandbox.command(["relay", "--log-format", "json"]);
    under(&mut command, clock).stdout(Stdio::null()).stderr(file);
    let running = Running::start(&mut command);
    wait_until("the relay has started", PATIENCE, || {
        sandbox.read(log).contains("relay_started")
    });
    let line: serde_json::Value = serde_json::from_str(sandbox.read(log).lines().next().unwrap()).unwrap();
    let told: Timestamp = line["timestamp"].as_str().unwrap().parse().unwrap();
    let apart = told.as_second() - Timestamp::try_from(SystemTime::now()).unwrap().as_second();
    assert!(
        (apart - offset).abs() < 300,
        "its clock is {apart} s off instead of {offset}"
    );
    running
}

fn query(sandbox: &Sandbox, sql: &str) -> Vec<Row> {
    let TestDatabase::Postgres { url, schema } = &sandbox.place else {
        panic!("this test is about PostgreSQL");
    };
    let set = format!("SET search_path TO {schema}");
    block_on(async move {
        let client = connect(url).await;
        client.batch_execute(&set).await.unwrap();
        client.query(sql, &[]).await.unwrap()
    })
}

/// How many lanes a relay holds.
fn lanes_of(sandbox: &Sandbox, relay: &Running) -> i64 {
    let sql = format!(
        "SELECT count(*) FROM outbox_lane JOIN outbox_relay USING (owner) WHERE name LIKE '%:{}'",
        relay.0.id()
    );
    query(sandbox, &sql)[0].get(0)
}

/// Seconds on the database's clock.
fn database_now(sandbox: &Sandbox) -> f64 {
    query(sandbox, "SELECT extract(epoch FROM clock_timestamp())::float8")[0].get(0)
}

fn arrived(sandbox: &Sandbox) -> usize {
    lines(&sandbox.path("out/out.jsonl")).len()
}

/// A message for each of many keys, so that every relay has some.
fn emit(sandbox: &Sandbox, more: &[&str]) {
    for key in 0..KEYS {
        let key = format!("key-{key}");
        sandbox.emit(&[&["clock", "--payload", "{}", "--key", &key], more].concat());
    }
}

fn deliver(sandbox: &Sandbox, before: usize) {
    emit(sandbox, &[]);
    wait_until("all are delivered", PATIENCE, || arrived(sandbox) == before + KEYS);
}

fn scheduled_messages_come_when_they_are_due(sandbox: &Sandbox) {
    let before = arrived(sandbox);
    emit(sandbox, &["--delay", "6s"]);
    let sql =
        "SELECT extract(epoch FROM min(due_at))::float8, extract(epoch FROM max(due_at))::float8 FROM outbox_waiting";
    let row = &query(sandbox, sql)[0];
    let (first, last): (f64, f64) = (row.get(0), row.get(1));
    loop {
        // In this order: messages that have arrived by now were due before now.
        let count = arrived(sandbox) - before;
        let now = database_now(sandbox);
        assert!(count == 0 || now >= first, "{count} came {} s early", first - now);
        if count == KEYS {
            break;
        }
        assert!(
            now < last + 10.0,
            "{} are still missing 10 s after they were due",
            KEYS - count
        );
    }
}

fn retries_wait_as_long_as_they_should(sandbox: &Sandbox) {
    let before = arrived(sandbox);
    std::fs::rename(sandbox.path("out"), sandbox.path("away")).unwrap();
    emit(sandbox, &[]);
    let sql = "SELECT extract(epoch FROM due_at - clock_timestamp())::float8, \
                   extract(epoch FROM clock_timestamp() - waiting_since)::float8, \
                   extract(epoch FROM clock_timestamp() - (history -> 0 ->> 'at')::timestamptz)::float8 \
               FROM outbox_waiting WHERE state = 'deferred' AND due_at IS NOT NULL";
    let mut waiting = Vec::new();
    wait_until("all wait for the sink", PATIENCE, || {
        waiting = query(sandbox, sql);
        waiting.len() == KEYS
    });
    for row in waiting {
        let (until_due, waited, tried): (f64, f64, f64) = (row.get(0), row.get(1), row.get(2));
        // The longest pause for a sink that is down is half a minute.
        assert!((-60.0..60.0).contains(&until_due), "due in {until_due} s");
        assert!(
            (0.0..60.0).contains(&waited) && (0.0..60.0).contains(&tried),
            "{waited} {tried}"
        );
    }
    std::fs::rename(sandbox.path("away"), sandbox.path("out")).unwrap();
    wait_until("all are delivered after all", Duration::from_secs(60), || {
        arrived(sandbox) == before + KEYS
    });
}

/// Kills one relay; the other takes its lanes when the lease ends by the database's clock, and not before.
fn takes_over(sandbox: &Sandbox, heir: &Running, mut victim: Running) {
    let before = arrived(sandbox);
    assert_eq!((lanes_of(sandbox, heir), lanes_of(sandbox, &victim)), (40, 40));
    victim.signal(Signal::KILL);
    victim.end(PATIENCE);
    let sql = format!(
        "SELECT extract(epoch FROM until)::float8 FROM outbox_relay WHERE name LIKE '%:{}'",
        victim.0.id()
    );
    let until: f64 = query(sandbox, &sql)[0].get(0);
    emit(sandbox, &[]);
    loop {
        let held = lanes_of(sandbox, &victim);
        let now = database_now(sandbox);
        assert!(
            held == 40 || now >= until,
            "its lanes were taken {} s early",
            until - now
        );
        if held == 0 {
            break;
        }
        assert!(now < until + 10.0, "no relay took its lanes within 10 s");
    }
    wait_until("the other has all lanes", PATIENCE, || lanes_of(sandbox, heir) == 80);
    wait_until("it delivers all", PATIENCE, || arrived(sandbox) == before + KEYS);
}
