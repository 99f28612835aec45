//! Waits for the write lock.
//!
//! SQLite has no queue for the write lock: a program that asks at the right moment gets it. SQLite itself sleeps for up
//! to 100 ms between two attempts, and so it hardly ever hits the moment between two commits of a program that commits
//! without a pause. Next to one such writer, settling took 4 s in the median and up to 7 s, longer than some leases.
//! With an attempt every few microseconds it takes 1 ms in the median and 0.1 to 0.4 s at worst, at the cost of a tenth
//! of a processor while it waits.

use std::cell::Cell;
use std::time::Duration;

use rusqlite::Connection;
use tokio::time::Instant;

/// The pause between two looks; the system makes about 70 µs of it.
const NAP: Duration = Duration::from_micros(20);

thread_local! {
    // SQLite hands its callback nothing but a number. A connection is used on the thread that opened it.
    static TIMEOUT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets how long a connection, and every later connection of this thread, waits for a lock.
///
/// # Errors
/// When SQLite refuses the handler.
pub fn wait_for_locks(connection: &Connection, timeout: Duration) -> rusqlite::Result<()> {
    TIMEOUT.set(timeout);
    connection.busy_handler(Some(wait))
}

/// Whether to look again. `looks` counts from 0 for every lock that is waited for.
fn wait(looks: i32) -> bool {
    let now = Instant::now();
    let since = if looks == 0 { now } else { SINCE.get().unwrap_or(now) };
    SINCE.set(Some(since));
    if now.duration_since(since) >= TIMEOUT.get() {
        return false;
    }
    std::thread::sleep(NAP);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_waited_for_as_long_as_the_timeout_says() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Connection::open(folder.path().join("a.db")).unwrap();
        let (holder, waiter) = (open(), open());
        wait_for_locks(&waiter, Duration::from_millis(80)).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..2 {
            let began = Instant::now();
            let error = waiter.execute_batch("BEGIN IMMEDIATE").unwrap_err();
            assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
            assert!(began.elapsed() >= Duration::from_millis(80), "{:?}", began.elapsed());
        }
        holder.execute_batch("COMMIT").unwrap();
        waiter.execute_batch("BEGIN IMMEDIATE").unwrap();
    }

    #[test]
    fn a_program_that_commits_without_a_pause_does_not_shut_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let setup = Connection::open(&path).unwrap();
        setup
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)")
            .unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let writer = Connection::open(&path).unwrap();
                writer.busy_timeout(Duration::from_secs(30)).unwrap();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    writer
                        .execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1); COMMIT")
                        .unwrap();
                }
            });
            let connection = Connection::open(&path).unwrap();
            wait_for_locks(&connection, Duration::from_secs(30)).unwrap();
            let done = (0..20).all(|_| {
                connection
                    .execute_batch("BEGIN IMMEDIATE; DELETE FROM t; COMMIT")
                    .is_ok()
            });
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(done);
        });
    }
}
