//! A thread that owns a connection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use sendoff::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use crate::connect::Connect;
use crate::error::{breaks_connection, explain};

/// Says whether the connection can be used again.
type Job = Box<dyn FnOnce(Result<&mut Connection>) -> bool + Send>;

/// Runs what it is given on a thread of its own, in order, with a connection of its own. The connection is opened when
/// it is first needed, and anew after it broke. The thread ends with the worker.
#[derive(Debug)]
pub(crate) struct Worker {
    jobs: Sender<Job>,
}

impl Worker {
    /// Starts the thread.
    pub(crate) fn start(role: &str, connect: Connect) -> Result<Self> {
        let (jobs, inbox) = channel();
        std::thread::Builder::new()
            .name(format!("outbox-{role}"))
            .spawn(move || run(&connect, &inbox))
            .map_err(|error| {
                Error::new(ErrorKind::Unreachable, "a thread for the database cannot be started")
                    .because(error.to_string())
                    .next_step("raise the limit of threads")
                    .with_source(error)
            })?;
        Ok(Self { jobs })
    }

    /// Runs `work` and waits for it. `what` says in words what has failed, if it fails. When the caller stops waiting,
    /// the work is done all the same.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.post(move |connection| {
            let mut usable = true;
            let done = connection.and_then(|connection| {
                work(connection).map_err(|error| {
                    usable = !breaks_connection(&error);
                    explain(what, error)
                })
            });
            // Nobody may wait for it any more.
            let _ = answer.send(done);
            usable
        });
        answered.await.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Backend, what)
                .because("the thread of the connection stopped in the middle")
                .next_step("look for a panic above this line, and report it"))
        })
    }

    /// Runs `work` without waiting for it.
    pub(crate) fn post(&self, work: impl FnOnce(Result<&mut Connection>) -> bool + Send + 'static) {
        // The thread lives as long as this sender.
        let _ = self.jobs.send(Box::new(work));
    }
}

fn run(connect: &Connect, inbox: &Receiver<Job>) {
    let mut connection: Option<Connection> = None;
    while let Ok(job) = inbox.recv() {
        let opened = match &mut connection {
            Some(open) => Ok(open),
            none => connect.open().map(|open| none.insert(open)),
        };
        // What a panic left in the connection is unknown, so the next job gets a new one.
        let usable = catch_unwind(AssertUnwindSafe(|| job(opened))).unwrap_or(false);
        if !usable {
            connection = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteConfig;
    use crate::connect::Purpose;

    #[tokio::test]
    async fn a_panic_costs_one_call_and_not_the_worker() {
        let folder = tempfile::tempdir().unwrap();
        let config = SqliteConfig::new(folder.path().join("a.db"));
        let worker = Worker::start("test", Connect::new(&config, Purpose::Migrate)).unwrap();
        let panicked = worker
            .call("asking failed", |_| -> rusqlite::Result<()> { panic!("on purpose") })
            .await;
        assert!(panicked.unwrap_err().to_string().contains("asking failed"));
        let one = worker.call("asking failed", |connection| {
            connection.query_row("SELECT 1", [], |row| row.get::<_, i64>(0))
        });
        assert_eq!(one.await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_file_that_appears_later_is_opened_then() {
        let folder = tempfile::tempdir().unwrap();
        let config = SqliteConfig::new(folder.path().join("a.db"));
        let reader = Worker::start("test", Connect::new(&config, Purpose::Write)).unwrap();
        let ask = || {
            reader.call("asking failed", |connection| {
                connection.query_row("SELECT 1", [], |row| row.get::<_, i64>(0))
            })
        };
        assert_eq!(ask().await.unwrap_err().kind(), ErrorKind::SchemaMissing);
        Connect::new(&config, Purpose::Migrate).open().unwrap();
        assert_eq!(ask().await.unwrap(), 1);
    }
}
