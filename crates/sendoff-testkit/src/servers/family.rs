//! The processes that a server has started.

use rustix::process::{Pid, Signal, kill_process};

/// The children of a process, each with its command line.
pub(super) fn children(parent: u32) -> Vec<(u32, String)> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid| parent_of(*pid) == Some(parent))
        .map(|pid| (pid, command_line(pid)))
        .collect()
}

/// Sends a signal. What can fail is that the process is gone.
pub(super) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether it is there, and not merely unclaimed by its parent.
pub(super) fn runs(pid: u32) -> bool {
    fields(pid).is_some_and(|fields| fields.first().is_some_and(|state| state != "Z" && state != "X"))
}

/// Removes what `libfaketime` leaves behind of a process that was killed.
pub(super) fn forget_clock(pid: u32) {
    for file in ["faketime_shm_", "sem.faketime_sem_"] {
        let _ = std::fs::remove_file(format!("/dev/shm/{file}{pid}"));
    }
}

fn parent_of(pid: u32) -> Option<u32> {
    fields(pid)?.get(1)?.parse().ok()
}

/// State, parent and so on: what is behind the name, which may hold spaces and brackets.
fn fields(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    Some(behind.split_whitespace().map(str::to_owned).collect())
}

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}
