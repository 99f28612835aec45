//! What reaches a pipe, and what does not.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::sandbox::Sandbox;

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let sandbox = Sandbox::sqlite().migrated();
    sandbox.emit(&["t", "--payload", "{}", "--count", "1000"]);
    for args in [
        &["ls", "--limit", "1000"][..],
        &["ls", "--limit", "1000", "--json"],
        &["migrate", "--dry-run"],
    ] {
        // More than a pipe holds, so that the program is still writing when the reader goes.
        let mut child = sandbox
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::with_capacity(16, child.stdout.take().unwrap());
        let mut first = Vec::new();
        stdout.read_until(b'\t', &mut first).unwrap_or_default();
        drop(stdout);
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(
            (status.code(), err.contains("error") || err.contains("panicked")),
            (Some(0), false),
            "{err}"
        );
    }
}

#[test]
fn colours_come_only_when_asked_for_in_a_pipe() {
    let sandbox = Sandbox::sqlite();
    let plain = sandbox.run(["ls"]);
    assert!(
        plain.err.starts_with("error: ") && !plain.err.contains('\x1b'),
        "{plain:?}"
    );
    let coloured = sandbox.run(["ls", "--color", "always"]);
    assert!(coloured.err.contains('\x1b'), "{coloured:?}");
    let output = sandbox
        .command(["ls", "--color", "never"])
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    assert!(!String::from_utf8(output.stderr).unwrap().contains('\x1b'));
}

#[test]
fn texts_of_producers_cannot_break_a_line_or_steer_a_terminal() {
    let sandbox = Sandbox::sqlite().migrated();
    sandbox.emit(&["t", "--payload", "{}", "--key", "a\x1b[2J\n\tb"]);
    let out = sandbox.ok(["ls"]).out;
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(!out.contains('\x1b') && out.contains("a\\u{1b}[2J\\n\\tb"), "{out}");
}

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let out = Sandbox::sqlite().ok(["--help"]).out;
    for word in [
        "demo",
        "init",
        "migrate",
        "relay",
        "emit",
        "ls",
        "show",
        "dead",
        "config",
        "3 database unreachable",
    ] {
        assert!(out.contains(word), "{word} in {out}");
    }
}
