//! One running private server: started, waited for, and stopped whatever happens.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use super::nursery;
use crate::{child, interrupt};

/// Generous, because the machine may be compiling at the same time.
const READY_WITHIN: Duration = Duration::from_secs(180);

/// How long a server gets for an orderly stop before it is killed.
const STOPPED_WITHIN: Duration = Duration::from_secs(10);

/// How much of a server's log an error shows.
const TAIL_LINES: usize = 30;

/// A server that is stopped when this is dropped.
pub(crate) struct Instance {
    name: &'static str,
    child: Child,
    stop_signal: Signal,
    log: PathBuf,
}

impl Instance {
    /// Starts `command` with its output in `log`.
    pub(crate) fn start(name: &'static str, command: &mut Command, stop_signal: Signal, log: PathBuf) -> Result<Self> {
        let output = File::create(&log).with_context(|| format!("could not create {}", log.display()))?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            // A group of its own: Ctrl-C in the terminal reaches the tests first and the servers only through the guard.
            .process_group(0);
        let command = std::mem::replace(command, Command::new("true"));
        let child = nursery::spawn(command).with_context(|| format!("could not start {name}"))?;
        Ok(Self {
            name,
            child,
            stop_signal,
            log,
        })
    }

    /// Waits until `ready` says yes, as long as the server lives and the time allows.
    pub(crate) fn wait_until(&mut self, mut ready: impl FnMut() -> bool) -> Result<()> {
        let start = Instant::now();
        loop {
            interrupt::check()?;
            let answered = ready();
            // Looked at after the answer: when another process took the port, the answer was that process's.
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status} while it started. {}", self.name, self.tail());
            }
            if answered {
                return Ok(());
            }
            if start.elapsed() > READY_WITHIN {
                bail!("{} was not ready after {READY_WITHIN:?}. {}", self.name, self.tail());
            }
            thread::sleep(child::POLL);
        }
    }

    fn tail(&self) -> String {
        format!("The end of its log:\n{}", tail(&self.log))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        child::signal(&self.child, self.stop_signal);
        if child::ended_within(&mut self.child, STOPPED_WITHIN).is_some() {
            return;
        }
        eprintln!("{} did not stop within {STOPPED_WITHIN:?}: killing it", self.name);
        if let Some(group) = Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(0)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

fn tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_dies_while_starting_shows_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo the disk is on fire; exit 3"]);
        let mut instance = Instance::start("sh", &mut command, Signal::TERM, folder.path().join("sh.log")).unwrap();
        let error = instance.wait_until(|| false).unwrap_err().to_string();
        assert!(error.contains("the disk is on fire"), "{error}");
    }

    #[test]
    fn dropping_an_instance_stops_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("600");
        let instance = Instance::start("sleep", &mut command, Signal::TERM, folder.path().join("log")).unwrap();
        let proc_folder = PathBuf::from(format!("/proc/{}", instance.child.id()));
        assert!(proc_folder.exists());
        drop(instance);
        assert!(!proc_folder.exists());
    }
}
