//! Output to pipes.

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
        // More than a pipe holds, so that the program is still writing when the reader closes it.
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

/// Every command, in the order of the help.
const COMMANDS: [&str; 27] = [
    "demo",
    "init",
    "migrate",
    "relay",
    "emit",
    "ls",
    "show",
    "status",
    "stats",
    "failures",
    "retry",
    "dead",
    "keys",
    "pause",
    "resume",
    "lanes",
    "jobs",
    "reap",
    "cleanup",
    "audit",
    "celery-relay",
    "celery-dead",
    "celery-stats",
    "sink",
    "config",
    "completions",
    "man",
];

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let out = Sandbox::sqlite().ok(["--help"]).out;
    let (_, listed) = out.split_once("Commands:\n").unwrap();
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let named: Vec<&str> = listed
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(named[..named.len() - 1], COMMANDS, "{out}");
    assert_eq!(named.last(), Some(&"help"));
    assert!(out.contains("3 database unreachable"), "{out}");
}

#[test]
fn every_command_is_in_the_documentation() {
    let docs = include_str!("../../../../docs/cli.md");
    for command in COMMANDS {
        assert!(docs.contains(&format!("`sendoff {command}")), "{command}");
    }
}

#[test]
fn every_shell_gets_a_script_that_knows_every_command() {
    let sandbox = Sandbox::sqlite();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.ok(["completions", shell]).out;
        for command in COMMANDS {
            assert!(script.contains(command), "{command} for {shell}");
        }
    }
    let script = sandbox.ok(["completions", "bash"]).out;
    sandbox.write("sendoff.bash", &script);
    let sourced = std::process::Command::new("bash")
        .args(["-c", "source ./sendoff.bash && complete -p sendoff"])
        .current_dir(sandbox.path("."))
        .output()
        .unwrap();
    let told = String::from_utf8(sourced.stdout).unwrap();
    assert!(told.contains("sendoff"), "{told}{:?}", sourced.stderr);
    assert_eq!(sandbox.run(["completions", "tcsh"]).code, 2);
}

#[test]
fn every_command_has_a_manual_page() {
    let sandbox = Sandbox::sqlite();
    let page = sandbox.ok(["man"]).out;
    assert!(
        page.contains(".TH sendoff 1") && page.contains("sendoff\\-relay"),
        "{page}"
    );
    let told = sandbox.ok(["man", "--out", "pages"]);
    assert_eq!(told.out, "", "the pages are the output");
    for command in COMMANDS.into_iter().chain(["dead-retry", "keys-release", "sink-test"]) {
        let page = sandbox.read(&format!("pages/sendoff-{command}.1"));
        assert!(page.contains(".SH SYNOPSIS"), "{command}: {page}");
    }
    sandbox.write("file", "");
    sandbox.run(["man", "--out", "file"]).fails_with_reason(2, &["--out"]);
}
