//! A running server with everything that it has started.

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// Generous: the machine may be compiling at the same time.
const READY_WITHIN: Duration = Duration::from_secs(180);

/// Waits for a signal to stop by itself.
const STOPPED_WITHIN: Duration = Duration::from_secs(20);

/// How much of a server's log a failed start shows.
const TAIL_LINES: usize = 30;

/// A process group. Dropping it kills the group.
pub(super) struct Process {
    name: &'static str,
    child: Child,
    /// Kills the group when this process ends without a chance to do so: its standard input is a pipe from here.
    watchdog: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, and appends what it writes to `log`.
    pub(super) fn start(name: &'static str, mut command: Command, log: PathBuf) -> Self {
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap_or_else(|error| panic!("cannot write the log {}: {error}", log.display()));
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a file has a second handle"))
            .stderr(output)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{name} cannot be started ({error}): run the tests with `cargo xtask test`")
            });
        let watchdog = Command::new("sh")
            .args(["-c", "read -r _; kill -s KILL -- \"-$1\"", "watchdog"])
            .arg(child.id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Not in the test's group, which a test runner kills as a whole.
            .process_group(0)
            .spawn()
            .expect("every machine has a shell");
        Self {
            name,
            child,
            watchdog,
            log,
        }
    }

    /// Waits until something that listens on the port answers `hello` with `greeting`.
    pub(super) async fn wait_until_ready(&mut self, port: u16, hello: &[u8], greeting: &[u8]) {
        let began = Instant::now();
        while !greets(port, hello, greeting).await {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!(
                    "{} ended with {status} while it started. Its log:\n{}",
                    self.name,
                    self.tail()
                );
            }
            let waited = began.elapsed();
            assert!(
                waited < READY_WITHIN,
                "{} is not ready after {waited:?}. Its log:\n{}",
                self.name,
                self.tail()
            );
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Asks it to stop and waits until it has.
    pub(super) async fn stop(mut self) {
        self.signal(Signal::TERM);
        let began = Instant::now();
        while !matches!(self.child.try_wait(), Ok(Some(_))) && began.elapsed() < STOPPED_WITHIN {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// The number of the server's process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the server and all it has started.
    pub(super) fn signal(&self, signal: Signal) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // What can fail here is that nobody is left in the group.
            let _ = kill_process_group(group, signal);
        }
    }

    /// The end of its log.
    pub(super) fn tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        // Before its pipe closes: the number of the group may be somebody else's by now.
        let _ = self.watchdog.kill();
        let _ = self.watchdog.wait();
    }
}

async fn greets(port: u16, hello: &[u8], greeting: &[u8]) -> bool {
    let answer = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        stream.write_all(hello).await.ok()?;
        let mut answer = vec![0; greeting.len()];
        stream.read_exact(&mut answer).await.ok()?;
        Some(answer)
    };
    let answer = timeout(Duration::from_secs(2), answer).await;
    answer.is_ok_and(|answer| answer.as_deref() == Some(greeting))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn running(pid: &str) -> bool {
        // A dead process whose parent has not asked for it yet is there, but dead.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
        let began = std::time::Instant::now();
        while !so() {
            assert!(began.elapsed() < Duration::from_secs(10), "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_a_server_has_started_goes_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let process = Process::start("sh", shell("sleep 600 & echo $!; wait"), log.clone());
        wait_for("the number of the child", || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.ends_with('\n'))
        });
        let child = std::fs::read_to_string(&log).unwrap();
        assert!(running(&child));
        drop(process);
        wait_for("the end of the child", || !running(&child));
    }

    #[test]
    fn a_server_does_not_outlive_a_killed_test() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start("sleep", shell("exec sleep 600"), folder.path().join("log"));
        let server = process.child.id().to_string();
        assert!(running(&server));
        // What the kernel does to the pipes of a process that is killed.
        drop(process.watchdog.stdin.take());
        wait_for("the end of the server", || !running(&server));
    }

    #[tokio::test]
    #[should_panic(expected = "the disk is on fire")]
    async fn a_server_that_does_not_start_shows_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start(
            "sh",
            shell("echo the disk is on fire; exit 3"),
            folder.path().join("log"),
        );
        process.wait_until_ready(1, b"", b"never").await;
    }
}
