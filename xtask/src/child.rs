//! Running another program to its end, without outliving it and without leaving it behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::interrupt;

/// How often a wait looks at the child and at the interrupt flag.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// How long an interrupted child gets to finish by itself.
const GRACE: Duration = Duration::from_secs(10);

/// Runs `command` with this terminal and returns how it ended.
pub(crate) fn run(command: &mut Command) -> Result<ExitStatus> {
    let mut child = spawn(command)?;
    wait(&mut child, None)
}

/// Like [`run`], but the program must end within `limit`.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    let mut child = spawn(command)?;
    wait(&mut child, Some(limit)).with_context(|| format!("while running {command:?}"))
}

/// Like [`run`], but also returns every line that the program wrote, on either stream, while it still appears here.
pub(crate) fn run_and_read(command: &mut Command) -> Result<(ExitStatus, Vec<String>)> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command)?;
    let out = child
        .stdout
        .take()
        .map(|stream| thread::spawn(|| tee(stream, std::io::stdout())));
    let err = child
        .stderr
        .take()
        .map(|stream| thread::spawn(|| tee(stream, std::io::stderr())));
    let status = wait(&mut child, None)?;
    let lines = [out, err]
        .into_iter()
        .flatten()
        .filter_map(|reader| reader.join().ok())
        .flatten()
        .collect();
    Ok((status, lines))
}

/// Runs a quiet helper program; its output is only shown when it fails.
pub(crate) fn run_quietly(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| cannot_start(command))?;
    if !output.status.success() {
        bail!(
            "{command:?} ended with {}:\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Sends `signal` to a child that has not been waited for yet, so its pid cannot have been reused.
pub(crate) fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(i32::try_from(child.id()).unwrap_or(0)) {
        // The only failure left is "no such process": it ended by itself, which is what the signal was for.
        let _ = kill_process(pid, signal);
    }
}

/// Waits at most `limit` for the child to end.
pub(crate) fn ended_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if start.elapsed() >= limit {
            return None;
        }
        thread::sleep(POLL);
    }
}

fn spawn(command: &mut Command) -> Result<Child> {
    command.spawn().with_context(|| cannot_start(command))
}

fn cannot_start(command: &Command) -> String {
    format!(
        "could not start {:?}: is it installed and on PATH?",
        command.get_program()
    )
}

fn wait(child: &mut Child, limit: Option<Duration>) -> Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("could not wait for a child process")? {
            interrupt::check()?;
            return Ok(status);
        }
        if interrupt::requested() {
            stop(child);
            interrupt::check()?;
        }
        if let Some(limit) = limit.filter(|limit| start.elapsed() > *limit) {
            stop(child);
            bail!("did not end within {limit:?} and was stopped");
        }
        thread::sleep(POLL);
    }
}

fn stop(child: &mut Child) {
    signal(child, Signal::TERM);
    if ended_within(child, GRACE).is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn tee(stream: impl Read, mut screen: impl Write) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // A closed screen (`| head`) must not stop the program whose output is being read.
        let _ = screen.write_all(&line).and_then(|()| screen.flush());
        lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn program_that_does_not_end_is_stopped() {
        let start = Instant::now();
        let error = run_within(&mut shell("exec sleep 600"), Duration::from_millis(50)).unwrap_err();
        assert!(format!("{error:#}").contains("did not end within"), "{error:#}");
        assert!(start.elapsed() < GRACE);
    }

    #[test]
    fn lines_of_both_streams_are_read() {
        let (status, lines) = run_and_read(&mut shell("echo out; echo err >&2; exit 4")).unwrap();
        assert_eq!(status.code(), Some(4));
        assert_eq!(lines, ["out", "err"]);
    }

    #[test]
    fn failed_helper_shows_what_it_wrote() {
        let error = run_quietly(&mut shell("echo no space left >&2; exit 1")).unwrap_err();
        assert!(error.to_string().contains("no space left"), "{error}");
    }

    #[test]
    fn missing_program_is_named() {
        let error = run(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert!(error.contains("no-such-program"), "{error}");
    }
}
