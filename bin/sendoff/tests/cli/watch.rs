//! `status --watch`, on a terminal and off it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use sendoff_testkit::{Fault, FaultProxy};
use serde_json::Value;

use crate::sandbox::{Running, Sandbox, wait_until};
use crate::status::{relay, wait_for};
use crate::terminal::{resize, screen, terminal};

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn off_a_terminal_every_look_is_a_line_or_a_block() {
    let sandbox = Sandbox::sqlite().migrated();
    for flags in [&["--json"][..], &[]] {
        let args = [&["status", "--watch", "--interval", "0.1"], flags].concat();
        let mut watch = Running::start(sandbox.command(args).stdout(Stdio::piped()));
        let mut out = BufReader::new(watch.0.stdout.take().unwrap()).lines();
        let mut seen = 0;
        while seen < 3 {
            let line = out.next().unwrap().unwrap();
            if !flags.is_empty() {
                let view: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(view["level"], "warning");
                seen += 1;
            } else if line.starts_with("warning: ") {
                seen += 1;
            }
            assert!(!line.contains('\x1b'), "{line:?}");
        }
        watch.signal(Signal::INT);
        assert_eq!(watch.end(PATIENCE).code(), Some(0));
    }
}

#[test]
fn a_database_that_goes_away_does_not_end_the_watch() {
    let sandbox = Sandbox::postgres().migrated();
    let url = sandbox.place.url();
    let port: u16 = url
        .rsplit(':')
        .next()
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let wire = runtime.block_on(FaultProxy::start(port));
    let by_wire = wire.url(&url, port);
    let args = [
        "status",
        "--watch",
        "--interval",
        "0.1",
        "--json",
        "--database",
        &by_wire,
    ];
    let mut watch = Running::start(sandbox.command(args).stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut out = BufReader::new(watch.0.stdout.take().unwrap()).lines();
    let mut wait_for_level = |level: &str| {
        let mut views = out
            .by_ref()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        views.find(|view| view["level"] == level).unwrap()
    };
    wait_for_level("warning");
    wire.set(Fault::Refuse);
    let missed = wait_for_level("unknown");
    assert!(
        missed["verdict"].as_str().is_some_and(|verdict| !verdict.is_empty()),
        "{missed}"
    );
    wire.set(Fault::Pass);
    wait_for_level("warning");
    watch.signal(Signal::TERM);
    assert_eq!(watch.end(PATIENCE).code(), Some(0));
}

/// What a terminal shows after these bytes, as far as a frame goes: its lines without escapes.
fn last_frame(shown: &str) -> Vec<String> {
    let frame = shown.rsplit("\x1b[H").next().unwrap();
    let mut text = String::new();
    let mut chars = frame.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            text.push(c);
        }
    }
    // The terminal adds a carriage return to every line feed.
    text.split('\n').map(|line| line.replace('\r', "")).collect()
}

#[test]
fn a_terminal_is_redrawn_at_any_size_and_given_back() {
    let sandbox = Sandbox::sqlite().migrated();
    sandbox.configure(
        "[[sink]]\nname = \"full\"\ntype = \"file\"\npath = \"/dev/full\"\nfsync = false\n\
         [[route]]\nmatch = \"*\"\nto = [\"full\"]\n",
    );
    sandbox.emit(&["order.placed", "--payload", "{}", "--count", "5"]);
    let _relay = relay(&sandbox, &[], "relay.log");
    wait_for("the sink is down", &sandbox, |view| view["sinks"][0]["state"] == "down");
    let keyboard = terminal(80, 40);
    let mut command = sandbox.command(["status", "--watch", "--interval", "0.2"]);
    command.env("TERM", "xterm-256color");
    command
        .stdin(screen(&keyboard))
        .stdout(screen(&keyboard))
        .stderr(screen(&keyboard));
    let mut watch = Running::start(&mut command);
    drop(command);
    let shown = Arc::new(Mutex::new(Vec::new()));
    let reading = {
        let (shown, mut keyboard) = (shown.clone(), File::from(keyboard.try_clone().unwrap()));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = keyboard.read(&mut bytes) {
                if count == 0 {
                    break;
                }
                shown.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        })
    };
    let text = || String::from_utf8_lossy(&shown.lock().unwrap()).into_owned();
    let whole = |text: &str| text.ends_with("\x1b[J");
    wait_until("the status is drawn", PATIENCE, || {
        whole(&text()) && text().contains("full is down for ") && text().matches("\x1b[H").count() > 2
    });
    assert!(text().starts_with("\x1b[?1049h\x1b[?25l"), "{:?}", text());
    for (columns, rows) in [(40, 50), (80, 3), (20, 8)] {
        resize(&keyboard, columns, rows);
        // There is no session with a terminal of its own: the signal that a resize brings is sent by hand.
        watch.signal(Signal::WINCH);
        wait_until("it fits the new size", PATIENCE, || {
            let frame = last_frame(&text());
            let fits = frame.len() <= usize::from(rows)
                && frame.iter().all(|line| line.chars().count() <= usize::from(columns));
            whole(&text()) && fits && !frame.is_empty()
        });
        let frame = last_frame(&text());
        assert_eq!(frame.last().unwrap().contains('…'), rows < 10, "{frame:#?}");
    }
    watch.signal(Signal::INT);
    assert_eq!(watch.end(PATIENCE).code(), Some(0));
    drop(keyboard);
    reading.join().unwrap();
    assert!(text().ends_with("\x1b[?25h\x1b[?1049l"), "{:?}", text());
}
