//! What a person at a terminal sees, and is asked.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::sandbox::Sandbox;

/// What a run on a terminal came to.
#[derive(Debug)]
struct Seen {
    code: i32,
    /// All that was on the screen, one after the other.
    shown: String,
}

/// Runs the program on a terminal of its own, where somebody types.
fn at_a_terminal(sandbox: &Sandbox, args: &[&str], typed: &str, environment: &[(&str, &str)]) -> Seen {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let keyboard = openpt(flags).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let size = Winsize {
        ws_row: 40,
        ws_col: 200,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&keyboard, size).unwrap();
    let screen = || Stdio::from(ioctl_tiocgptpeer(&keyboard, flags).unwrap());
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
    sandbox.json(&["dead", "ls"])["messages"].as_array().unwrap().len()
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
        assert!(seen.shown.contains("Bring back 3 dead letters? [y/N] "), "{seen:?}");
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
    for (command, answer, code) in [("retry", "n\n", 1), ("reset", "n\n", 1), ("retry", "y\n", 0)] {
        let seen = at_a_terminal(&sandbox, &[command, "--all", "--scheduled"], answer, &[]);
        assert!(seen.shown.contains("Make 1 messages due at once? [y/N] "), "{seen:?}");
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
