//! A thread that owns a connection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use sendoff::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use crate::connect::{Connect, Opened};
use crate::error::{breaks_connection, explain};
use crate::holder::name_holder;

/// Says whether the connection can be used again.
type Job = Box<dyn FnOnce(Result<&mut Opened>) -> bool + Send>;

/// Runs what it is given on a thread of its own, in order, with a connection of its own. The connection is opened when
/// it is first needed, and anew after it broke, or when another file has taken the place of its own. The thread ends with the
/// worker.
///
/// What it is given never waits for anything but the database, so a transaction in it is as long as its statements.
#[derive(Debug)]
pub(crate) struct Worker {
    jobs: Sender<Job>,
    path: Arc<Path>,
}

impl Worker {
    /// Starts the thread.
    pub(crate) fn start(role: &str, connect: Connect) -> Result<Self> {
        let (jobs, inbox) = channel();
        let path = connect.path().into();
        std::thread::Builder::new()
            .name(format!("outbox-{role}"))
            .spawn(move || run(&connect, &inbox))
            .map_err(|error| {
                Error::new(ErrorKind::Unreachable, "cannot start a thread for the database")
                    .because(error.to_string())
                    .next_step("raise the thread limit of the process")
                    .with_source(error)
            })?;
        Ok(Self { jobs, path })
    }

    /// Runs `work` and waits for it. `what` says in words what has failed, if it fails. When the caller stops waiting,
    /// the work is still done.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.call_opened(what, move |opened| work(opened)).await
    }

    /// The same for what has to know which file is open.
    pub(crate) async fn call_opened<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut Opened) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let path = self.path.clone();
        let (answer, answered) = oneshot::channel();
        self.post(move |opened| {
            let mut usable = true;
            let done = opened.and_then(|opened| {
                work(opened).map_err(|error| {
                    usable = !breaks_connection(&error);
                    name_holder(explain(what, error), &path)
                })
            });
            // Nobody may wait for it any more.
            let _ = answer.send(done);
            usable
        });
        answered.await.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Backend, what)
                .because("the thread of the connection panicked")
                .next_step("find the panic in the log above this line, and report it as a bug"))
        })
    }

    /// Runs `work` without waiting for it.
    pub(crate) fn post(&self, work: impl FnOnce(Result<&mut Opened>) -> bool + Send + 'static) {
        // The thread lives as long as this sender.
        let _ = self.jobs.send(Box::new(work));
    }
}

fn run(connect: &Connect, inbox: &Receiver<Job>) {
    let mut open: Option<Opened> = None;
    while let Ok(job) = inbox.recv() {
        let opened = connect.ensure(&mut open);
        // What a panic left in the connection is unknown, so the next job gets a new one.
        let usable = catch_unwind(AssertUnwindSafe(|| job(opened))).unwrap_or(false);
        // A transaction that could not even be rolled back would keep the write lock from everybody. Closing frees it.
        open = open.filter(|opened| usable && connect.is_tidy(opened));
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

    #[tokio::test]
    async fn a_transaction_that_was_left_open_ends_with_its_job() {
        let folder = tempfile::tempdir().unwrap();
        let config = SqliteConfig::new(folder.path().join("a.db"));
        let leave_open = |worker: &Worker| {
            let (done, wait) = oneshot::channel();
            worker.post(move |opened| {
                let began = opened.is_ok_and(|opened| opened.execute_batch("BEGIN IMMEDIATE").is_ok());
                done.send(began).is_ok()
            });
            wait
        };
        let writer = Worker::start("test", Connect::new(&config, Purpose::Migrate)).unwrap();
        assert!(leave_open(&writer).await.unwrap());
        // Jobs are done in order, so the connection is closed before this one.
        let is_open = writer.call("asking failed", |connection| Ok(!connection.is_autocommit()));
        assert!(!is_open.await.unwrap());
        let application = Worker::start("test", Connect::new(&config, Purpose::Emit)).unwrap();
        assert!(leave_open(&application).await.unwrap());
        let is_open = application.call("asking failed", |connection| Ok(!connection.is_autocommit()));
        assert!(
            is_open.await.unwrap(),
            "the application's transactions have several calls"
        );
    }
}
