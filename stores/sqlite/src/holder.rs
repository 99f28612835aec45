//! Finds the process that holds the write lock, if possible.
//!
//! No other process can break the lock: while a process is stopped in the middle of a transaction, all others wait
//! until it is continued or killed. So the error names that process.

use std::path::Path;

use sendoff::{Error, ErrorKind};

use crate::file::{At, FileId};

/// Where the lock of writers is: in a log's index, and in a file without a log.
const LOG_LOCK: u64 = 120;
const FILE_LOCK: u64 = 0x4000_0001;

/// How often the list of locks is read for it.
const LOOKS: u32 = 5;

/// A process that holds the lock.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    pid: u32,
    /// Its name, if it is known.
    name: Option<String>,
    is_stopped: bool,
}

/// Names the holder in an error about the lock.
pub(crate) fn name_holder(error: Error, path: &Path) -> Error {
    if error.kind() != ErrorKind::Busy {
        return error;
    }
    let Some(holder) = holder(path) else { return error };
    let why = error.why().unwrap_or_default().to_owned();
    let (said, next) = holder.in_words(std::process::id());
    error.because(format!("{why}; {said}")).next_step(next)
}

/// Linux lists the locks page by page: one that is held all the time is left out now and then while others come and go.
fn holder(path: &Path) -> Option<Holder> {
    (0..LOOKS).find_map(|_| look(path))
}

fn look(path: &Path) -> Option<Holder> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let mut index = path.as_os_str().to_owned();
    index.push("-shm");
    let is_held = |path: &Path, at: u64| match At::path(path) {
        At::File(Some(file)) => locked_by(&locks, file, at),
        At::File(None) | At::Nothing | At::Unknown => None,
    };
    let pid = is_held(Path::new(&index), LOG_LOCK).or_else(|| is_held(path, FILE_LOCK))?;
    let about = |what: &str| std::fs::read_to_string(format!("/proc/{pid}/{what}")).ok();
    Some(Holder {
        pid,
        name: about("comm").map(|name| name.trim_end().to_owned()),
        is_stopped: about("stat").is_some_and(|stat| is_stopped(&stat)),
    })
}

/// The process with a lock for writing on this byte of the file, in the words of Linux:
/// `7: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120`.
fn locked_by(locks: &str, file: FileId, at: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A line with an arrow is about one who waits.
        let [_, "POSIX", _, "WRITE", pid, row_ref, first, last] = words[..] else {
            return None;
        };
        let number: u64 = row_ref.rsplit(':').next()?.parse().ok()?;
        let last = last.parse().unwrap_or(u64::MAX);
        let is_it = number == file.number() && (first.parse().ok()?..=last).contains(&at);
        // A process of another container has the number 0.
        pid.parse().ok().filter(|pid| is_it && *pid != 0)
    })
}

/// By the letter behind the name, which may have brackets and spaces itself.
fn is_stopped(stat: &str) -> bool {
    let rest = stat.rsplit(')').next().unwrap_or_default().trim_start();
    rest.starts_with('T') || rest.starts_with('t')
}

impl Holder {
    /// What to say about it, and what to do.
    fn in_words(&self, own: u32) -> (String, String) {
        let Self { pid, name, is_stopped } = self;
        if *pid == own {
            let said = "this process itself holds the write lock, in another transaction".to_owned();
            return (said, "the call is retried; keep transactions short".to_owned());
        }
        let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        if *is_stopped {
            let said = format!("process {pid}{name} holds the write lock and is stopped");
            let next =
                format!("continue the process (kill -CONT {pid}) or end it; until then no other process can write");
            return (said, next);
        }
        let said = format!("process {pid}{name} holds the write lock");
        (
            said,
            "the call is retried; keep that process's transactions short".to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_found_by_its_file_and_its_row_ref() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "").unwrap();
        let At::File(Some(file)) = At::path(&path) else { return };
        let number = file.number();
        let locks = format!(
            "1: POSIX  ADVISORY  READ 10 08:01:{number} 123 123\n\
             2: FLOCK  ADVISORY  WRITE 11 08:01:{number} 0 EOF\n\
             2: -> POSIX  ADVISORY  WRITE 12 08:01:{number} 120 120\n\
             3: POSIX  ADVISORY  WRITE 13 08:01:7{number} 120 120\n\
             4: POSIX  ADVISORY  WRITE 14 08:01:{number} 120 120\n\
             5: POSIX  ADVISORY  WRITE 15 08:01:{number} 1073741825 EOF\n"
        );
        assert_eq!(locked_by(&locks, file, LOG_LOCK), Some(14));
        assert_eq!(locked_by(&locks, file, FILE_LOCK), Some(15));
        assert_eq!(locked_by(&locks, file, 121), None);
    }

    #[test]
    fn a_stopped_process_is_told_from_one_that_runs_whatever_its_name() {
        assert!(is_stopped("7 (a) T) T 1 7 7"));
        assert!(!is_stopped("7 (a) T) S 1 7 7"));
        let holder = Holder {
            pid: 7,
            name: Some("shop".to_owned()),
            is_stopped: true,
        };
        let (said, next) = holder.in_words(8);
        assert_eq!(said, "process 7 (shop) holds the write lock and is stopped");
        assert!(next.contains("kill -CONT 7"), "{next}");
        assert!(holder.in_words(7).0.starts_with("this process itself"));
    }
}
