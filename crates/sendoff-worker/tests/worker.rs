//! The loop of a worker, on a real store.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sendoff::store::{Job, JobCounts, MigrateStore, WorkStore};
use sendoff::{ErrorKind, Message};
use sendoff_relay::RetryPolicy;
use sendoff_store_sqlite::{SqliteConfig, SqliteStore};
use sendoff_worker::{Failure, WorkReport, Worker, WorkerSettings};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

struct Shop {
    store: Arc<SqliteStore>,
    stop: CancellationToken,
    folder: tempfile::TempDir,
}

impl Shop {
    async fn open(jobs: impl IntoIterator<Item = Message>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::new(SqliteConfig::new(folder.path().join("shop.db"))).unwrap();
        store.migrate().await.unwrap();
        let mut tx = store.begin_jobs().await.unwrap();
        tx.emit(&jobs.into_iter().collect::<Vec<_>>()).await.unwrap();
        tx.commit().await.unwrap();
        Self {
            store: Arc::new(store),
            stop: CancellationToken::new(),
            folder,
        }
    }

    fn worker(&self, settings: WorkerSettings) -> Worker {
        Worker::new(self.store.clone()).named("test").settings(settings)
    }

    /// As if the leases had run out while nobody looked, and another worker had the jobs now.
    fn take_away(&self) {
        let file = rusqlite::Connection::open(self.folder.path().join("shop.db")).unwrap();
        file.busy_timeout(Duration::from_secs(10)).unwrap();
        let taken = file.execute("UPDATE outbox_job SET claim = claim + 1, lease_owner = 'another'", []);
        assert_eq!(taken.unwrap(), 1);
    }

    /// When the lease on the only job ends.
    fn lease_end(&self) -> Option<i64> {
        let file = rusqlite::Connection::open(self.folder.path().join("shop.db")).unwrap();
        file.busy_timeout(Duration::from_secs(10)).unwrap();
        file.query_row("SELECT lease_until FROM outbox_job", [], |row| row.get(0))
            .unwrap()
    }

    async fn until(&self, what: &str, check: impl Fn(JobCounts) -> bool) {
        let waited = tokio::time::timeout(Duration::from_secs(60), async {
            while !check(self.store.job_counts().await.unwrap()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(waited.await.is_ok(), "waited in vain: {what}");
    }

    async fn stopped(&self, running: JoinHandle<sendoff::Result<WorkReport>>) -> WorkReport {
        self.stop.cancel();
        running.await.unwrap().unwrap()
    }
}

fn quick() -> WorkerSettings {
    WorkerSettings {
        idle_time: Duration::from_millis(5),
        retry: RetryPolicy {
            base: Duration::from_millis(1),
            ..RetryPolicy::default()
        },
        ..WorkerSettings::default()
    }
}

fn job(n: usize) -> Message {
    Message::json("t", &n).unwrap()
}

#[tokio::test]
async fn jobs_are_worked_on_and_gone() {
    let shop = Shop::open((0..500).map(job)).await;
    let seen = Arc::new(AtomicUsize::new(0));
    let (worker, stop, counter) = (shop.worker(quick()), shop.stop.clone(), seen.clone());
    let running = tokio::spawn(async move {
        let handler = move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }
        };
        worker.run(handler, stop).await
    });
    shop.until("all are done", |counts| counts.total() == 0).await;
    let report = shop.stopped(running).await;
    assert_eq!(
        (report.completed, report.lost, seen.load(Ordering::Relaxed)),
        (500, 0, 500)
    );
}

#[tokio::test]
async fn transient_failures_and_panics_are_tried_again_and_permanent_ones_are_not() {
    let topics = ["transient", "panic", "permanent"];
    let shop = Shop::open(topics.map(|topic| Message::json(topic, &()).unwrap().max_attempts(3))).await;
    let (worker, stop) = (shop.worker(quick()), shop.stop.clone());
    let running = tokio::spawn(async move {
        let handler = |job: Arc<sendoff::store::Job>| async move {
            match job.topic.as_str() {
                "transient" => Err(std::io::Error::other("no route"))?,
                "panic" if job.attempt < 3 => panic!("on purpose"),
                "permanent" => return Err(Failure::permanent("no such customer")),
                _ => {}
            }
            Ok(())
        };
        worker.run(handler, stop).await
    });
    shop.until("all have ended", |counts| counts.failed == 2 && counts.total() == 2)
        .await;
    let report = shop.stopped(running).await;
    assert_eq!((report.completed, report.retried, report.failed), (1, 4, 2));
}

#[tokio::test]
async fn a_handler_that_panics_before_it_awaits_anything_fails_its_job_and_nothing_else() {
    let shop = Shop::open(["early", "late"].map(|topic| Message::json(topic, &()).unwrap().max_attempts(2))).await;
    let (worker, stop) = (shop.worker(quick()), shop.stop.clone());
    let running = tokio::spawn(async move {
        let handler = |job: Arc<sendoff::store::Job>| {
            assert!(job.topic != "early", "on purpose");
            async { Ok(()) }
        };
        worker.run(handler, stop).await
    });
    shop.until("both have ended", |counts| counts.failed == 1 && counts.total() == 1)
        .await;
    let failed = shop.store.jobs(None, &[], None, i64::MIN, 10).await.unwrap();
    let error = failed[0].message.last_error.clone().unwrap();
    assert!(error.contains("panicked") && error.contains("on purpose"), "{error}");
    let report = shop.stopped(running).await;
    assert_eq!((report.completed, report.retried, report.failed), (1, 1, 1));
}

#[tokio::test]
async fn work_that_takes_longer_than_the_lease_keeps_it() {
    let shop = Shop::open([job(1).max_attempts(1)]).await;
    let settings = WorkerSettings {
        lease: Duration::from_secs(3),
        ..quick()
    };
    let (worker, stop) = (shop.worker(settings), shop.stop.clone());
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let closed = gate.clone();
    let running = tokio::spawn(async move {
        let handler = move |_| {
            let gate = closed.clone();
            async move {
                let _pass = gate.acquire().await;
                Ok(())
            }
        };
        worker.run(handler, stop).await
    });
    shop.until("it is begun", |counts| counts.running == 1).await;
    // Work goes on until the end of the lease is later than the first one could be.
    let first = shop.lease_end().unwrap();
    let extended = tokio::time::timeout(Duration::from_secs(60), async {
        while shop.lease_end().unwrap() <= first {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(extended.await.is_ok(), "the lease was never extended");
    gate.add_permits(1);
    shop.until("it is done", |counts| counts.total() == 0).await;
    let report = shop.stopped(running).await;
    assert_eq!((report.completed, report.lost), (1, 0));
}

#[tokio::test]
async fn a_clean_stop_finishes_what_is_running_and_gives_the_rest_back_at_once() {
    let shop = Shop::open((0..10).map(job)).await;
    let settings = WorkerSettings {
        batch: 10,
        concurrency: 2,
        ..quick()
    };
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let begun = Arc::new(AtomicUsize::new(0));
    let (worker, stop) = (shop.worker(settings), shop.stop.clone());
    let (closed, counter) = (gate.clone(), begun.clone());
    let running = tokio::spawn(async move {
        let handler = move |_| {
            let (gate, begun) = (closed.clone(), counter.clone());
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                let _pass = gate.acquire().await;
                Ok(())
            }
        };
        worker.run(handler, stop).await
    });
    let both = async {
        while begun.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
    shop.stop.cancel();
    shop.until("the rest is given back while two are running", |counts| {
        (counts.pending, counts.running) == (8, 2)
    })
    .await;
    gate.add_permits(10);
    let store = shop.store.clone();
    let report = shop.stopped(running).await;
    assert_eq!((report.completed, report.released), (2, 8));
    assert_eq!(store.job_counts().await.unwrap().total(), 8);
    assert_eq!(
        store
            .claim_batch("next", 10, Duration::from_secs(60))
            .await
            .unwrap()
            .len(),
        8
    );
}

#[tokio::test]
async fn work_whose_lease_was_lost_is_dropped() {
    let shop = Shop::open([job(1)]).await;
    let settings = WorkerSettings {
        lease: Duration::from_secs(6),
        idle_time: Duration::from_secs(600),
        ..quick()
    };
    let (worker, stop) = (shop.worker(settings), shop.stop.clone());
    let begun = Arc::new(tokio::sync::Notify::new());
    let tell = begun.clone();
    let running = tokio::spawn(async move {
        let handler = move |_| {
            tell.notify_one();
            std::future::pending()
        };
        worker.run(handler, stop).await
    });
    // Not only handed out: what no handler has got yet would be given back by a worker that stops.
    begun.notified().await;
    shop.take_away();
    shop.stop.cancel();
    // Its handler never ends: only the heartbeat that finds out ends it.
    let report = tokio::time::timeout(Duration::from_secs(60), running).await.unwrap();
    assert_eq!(report.unwrap().unwrap().lost, 1);
}

#[tokio::test]
async fn marks_by_hand_are_refused_to_a_worker_that_lost_its_lease() {
    let shop = Shop::open([job(1), job(2)]).await;
    let worker = shop.worker(quick());
    let jobs = worker.claim_batch(10).await.unwrap();
    worker.extend(&jobs).await.unwrap();
    worker.mark_success(&jobs[0]).await.unwrap();
    shop.take_away();
    let refused = [
        worker.mark_success(&jobs[1]).await.err(),
        worker.mark_retry(&jobs[1], Duration::ZERO, "x").await.err(),
        worker.mark_failed(&jobs[1], "x").await.err(),
        worker.extend(&jobs[1..]).await.err(),
    ];
    assert!(
        refused
            .iter()
            .all(|error| error.as_ref().is_some_and(|error| error.kind() == ErrorKind::LeaseLost))
    );
}

#[tokio::test]
async fn workers_of_two_kinds_share_the_table() {
    let jobs = ["print", "mail", "print", "scan"].map(|topic| Message::json(topic, &1).unwrap());
    let shop = Shop::open(jobs).await;
    let run = |topics: &[&'static str]| {
        let (worker, stop) = (shop.worker(quick()).topics(topics.iter().copied()), shop.stop.clone());
        let topics = topics.to_vec();
        tokio::spawn(async move {
            let handler = move |job: Arc<Job>| {
                let is_its_own = topics.contains(&job.topic.as_str());
                async move {
                    is_its_own
                        .then_some(())
                        .ok_or_else(|| Failure::permanent(job.topic.clone()))
                }
            };
            worker.run(handler, stop).await
        })
    };
    let (printer, others) = (run(&["print"]), run(&["mail", "fax"]));
    shop.until("both are done", |counts| counts.total() == 1).await;
    assert_eq!(shop.stopped(printer).await.completed, 2);
    assert_eq!(others.await.unwrap().unwrap().completed, 1);
    let left = shop.worker(quick()).claim_batch(10).await.unwrap();
    assert_eq!(left.iter().map(|job| job.topic.as_str()).collect::<Vec<_>>(), ["scan"]);
    assert_eq!(left[0].attempt, 1, "a job of another topic was charged an attempt");
}
