//! Output and questions on a terminal.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::sandbox::Sandbox;

const FLAGS: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);

/// The result of a run on a terminal.
#[derive(Debug)]
struct Seen {
    code: i32,
    /// All that was on the screen, one after the other.
    shown: String,
}

/// A terminal of this size.
pub(crate) fn terminal(columns: u16, rows: u16) -> OwnedFd {
    let keyboard = openpt(FLAGS).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    resize(&keyboard, columns, rows);
    keyboard
}

pub(crate) fn resize(keyboard: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(keyboard, size).unwrap();
}

/// Its other end, for a program.
pub(crate) fn screen(keyboard: &OwnedFd) -> Stdio {
    Stdio::from(ioctl_tiocgptpeer(keyboard, FLAGS).unwrap())
}

/// Runs the program on a terminal of its own, where somebody types.
fn at_a_terminal(sandbox: &Sandbox, args: &[&str], typed: &str, environment: &[(&str, &str)]) -> Seen {
    at_a_terminal_with(200, sandbox, args, typed, environment)
}

/// The same on a terminal with this many columns.
fn at_a_terminal_with(
    columns: u16,
    sandbox: &Sandbox,
    args: &[&str],
    typed: &str,
    environment: &[(&str, &str)],
) -> Seen {
    let keyboard = terminal(columns, 40);
    let screen = || screen(&keyboard);
    let mut command = sandbox.command(args);
    command.env("TERM", "xterm-256color").envs(environment.iter().copied());
    command.stdin(screen()).stdout(screen()).stderr(screen());
    let mut child = command.spawn().unwrap();
    // With it goes the last way to write to the screen, but for the program's own.
    drop(command);
    let mut keyboard = File::from(keyboard);
    keyboard.write_all(typed.as_bytes()).unwrap();
    let mut shown = Vec::new();
    // It ends with an error when nobody has the terminal open any more.
    let _ = keyboard.read_to_end(&mut shown);
    Seen {
        code: child.wait().unwrap().code().unwrap_or(-1),
        shown: String::from_utf8(shown).unwrap(),
    }
}

/// With three dead letters: nothing leads anywhere.
fn with_dead_letters() -> Sandbox {
    let sandbox = Sandbox::sqlite().migrated();
    sandbox.configure("[[sink]]\nname = \"out\"\ntype = \"stdout\"\n[[route]]\nmatch = \"other\"\nto = [\"out\"]\n");
    sandbox.emit(&["order.placed", "--payload", "{}", "--count", "3"]);
    sandbox.ok(["relay", "--once"]);
    sandbox
}

fn dead(sandbox: &Sandbox) -> usize {
    sandbox.json(&["dead", "ls"])["items"].as_array().unwrap().len()
}

#[test]
fn progress_is_shown_unless_something_else_writes_there() {
    for (flags, is_shown) in [
        (&[][..], true),
        (&["--log-level", "error"], true),
        (&["--json"], false),
        (&["-v"], false),
        (&["--log-level", "info"], false),
    ] {
        let sandbox = with_dead_letters();
        let args = [&["dead", "discard", "--all", "--yes"], flags].concat();
        let seen = at_a_terminal(&sandbox, &args, "", &[]);
        assert_eq!(
            (seen.code, seen.shown.contains("/3 discarded")),
            (0, is_shown),
            "{flags:?}: {seen:?}"
        );
    }
    let sandbox = with_dead_letters();
    let seen = at_a_terminal(&sandbox, &["cleanup", "--dead", "0s", "--yes"], "", &[]);
    assert!(seen.shown.contains("/3 deleted"), "{seen:?}");
}

#[test]
fn a_change_is_made_only_when_the_answer_is_yes() {
    let sandbox = with_dead_letters();
    for answer in ["n\n", "\n", "no\n", "yess\n"] {
        let seen = at_a_terminal(&sandbox, &["dead", "retry", "--all"], answer, &[]);
        assert!(seen.shown.contains("Retry 3 dead letters? [y/N] "), "{seen:?}");
        assert!(seen.shown.contains("nothing was changed"), "{seen:?}");
        assert_eq!((seen.code, dead(&sandbox)), (1, 3), "{seen:?}");
    }
    let seen = at_a_terminal(&sandbox, &["cleanup", "--dead", "0s"], "n\n", &[]);
    assert_eq!((seen.code, dead(&sandbox)), (1, 3), "{seen:?}");

    let seen = at_a_terminal(&sandbox, &["dead", "retry", "--all"], "y\n", &[]);
    assert!(seen.shown.contains("3 retried"), "{seen:?}");
    assert_eq!((seen.code, dead(&sandbox)), (0, 0), "{seen:?}");
}

#[test]
fn retry_and_reset_ask_like_the_others() {
    let sandbox = Sandbox::sqlite().migrated();
    let id = sandbox.emit(&["t", "--payload", "{}", "--delay", "1h"]);
    let (retry, reset) = (
        &["retry", "--all", "--scheduled"][..],
        &["retry", "--reset", "--all", "--scheduled"][..],
    );
    for (command, answer, code) in [(retry, "n\n", 1), (reset, "n\n", 1), (retry, "y\n", 0)] {
        let seen = at_a_terminal(&sandbox, command, answer, &[]);
        assert!(seen.shown.contains("Make 1 messages due now? [y/N] "), "{seen:?}");
        assert_eq!(seen.code, code, "{seen:?}");
    }
    let seen = at_a_terminal(&sandbox, &["retry", &id, "--yes"], "", &[]);
    assert_eq!(seen.code, 5, "it is due already: {seen:?}");
}

#[test]
fn a_terminal_gets_colours_unless_they_are_switched_off() {
    let sandbox = with_dead_letters();
    let seen = at_a_terminal(&sandbox, &["dead", "ls"], "", &[]);
    assert!(
        seen.shown.contains("\x1b[") && seen.shown.contains("unroutable"),
        "{seen:?}"
    );
    for (flags, environment) in [
        (&[][..], &[("NO_COLOR", "1")][..]),
        (&[], &[("TERM", "dumb")]),
        (&["--color", "never"], &[]),
    ] {
        let args = [&["dead", "ls"], flags].concat();
        let seen = at_a_terminal(&sandbox, &args, "", environment);
        assert!(
            !seen.shown.contains('\x1b') && seen.shown.contains("unroutable"),
            "{seen:?}"
        );
    }
}

/// The demo wraps its own lines: where a terminal does it, numbers are torn apart, and the view is drawn over itself.
#[test]
fn the_demo_fits_on_narrow_terminals() {
    for columns in [40, 60, 80] {
        let sandbox = Sandbox::sqlite();
        let args = [
            "demo",
            "--seconds",
            "1",
            "--rate",
            "1500",
            "--keep",
            "shop.db",
            "--color",
            "never",
        ];
        let seen = at_a_terminal_with(columns, &sandbox, &args, "", &[]);
        assert_eq!(seen.code, 0, "{seen:?}");
        let (program, mut committed, mut proven) = (env!("CARGO_BIN_EXE_sendoff"), 0, false);
        // The movements of the cursor end with a letter.
        let lines = seen.shown.split("\r\n").map(|line| {
            let parts = line.split('\x1b');
            let texts = parts.enumerate().map(|(number, part)| match number {
                0 => part,
                _ => part.split_once(char::is_alphabetic).map_or("", |(_, text)| text),
            });
            texts.collect::<String>().replace('\r', "")
        });
        for line in lines {
            let is_command = line.contains(program) || line.starts_with("  rm -f ");
            let width = line.chars().count();
            assert!(
                width <= columns.into() || is_command,
                "{columns}: {width} columns: {line:?}"
            );
            if let Some(count) = line.trim().strip_prefix("committed ") {
                let count = count.trim().split("  ").next().unwrap().replace(' ', "");
                let count: u32 = count
                    .parse()
                    .unwrap_or_else(|error| panic!("{columns}: {line:?}: {error}"));
                // It only grows; a number without its last digits would be smaller.
                assert!(count >= committed, "{columns}: {line:?} after {committed}");
                committed = count;
            }
            proven |= line.contains("committed =");
        }
        assert!(committed > 0 && proven, "{columns}: {seen:?}");
        for words in ["The database is kept in shop.db", "dead ls --database sqlite:shop.db"] {
            assert!(seen.shown.contains(words), "{columns}: {words} in {seen:?}");
        }
        sandbox.ok(["stats", "--database", "sqlite:shop.db"]);
    }
}

/// A time has digits behind a T; an age has none.
fn has_time(text: &str) -> bool {
    let is_time = |part: &[u8]| part[0] == b'T' && part[1..].iter().all(u8::is_ascii_digit);
    text.as_bytes().windows(3).any(is_time)
}

#[test]
fn a_list_fits_a_screen_of_80_columns_with_whole_ids_and_ages() {
    let sandbox = with_dead_letters();
    let id = sandbox.json(&["dead", "ls"])["items"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let key = "customer with a key that is longer than the screen ".repeat(3);
    sandbox.emit(&["t", "--payload", "{}", "--key", &key]);
    for args in [&["ls"][..], &["dead", "ls"], &["failures"]] {
        let seen = at_a_terminal_with(80, &sandbox, args, "", &[("NO_COLOR", "1")]);
        let lines: Vec<&str> = seen.shown.lines().filter(|line| !line.is_empty()).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{seen:?}");
    }
    let seen = at_a_terminal_with(80, &sandbox, &["dead", "ls"], "", &[("NO_COLOR", "1")]);
    assert!(
        seen.shown.contains(&id) && !seen.shown.contains("aggregate"),
        "{seen:?}"
    );
    assert!(!has_time(&seen.shown), "{seen:?}");
    let seen = at_a_terminal_with(200, &sandbox, &["dead", "ls", "--times"], "", &[("NO_COLOR", "1")]);
    assert!(has_time(&seen.shown), "{seen:?}");
}
