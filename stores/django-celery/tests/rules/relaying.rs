//! The relay, with a broker that does as it is told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::{Error, ErrorKind, Outcome, Outgoing, Reason, Result, Sink};
use sendoff_store_django_celery::{DjangoConfig, DjangoOutbox, DjangoRelay, Report, Settings};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::on_every_database;
use crate::scratch::Scratch;

on_every_database! {
    everything_is_sent_in_order_and_deleted
    a_task_that_fails_backs_off_and_dies_with_its_reason
    a_broker_that_is_down_charges_nothing_and_is_waited_for
    a_task_that_comes_too_early_is_kept_and_costs_nothing
    a_stop_gives_back_what_was_not_sent
    two_relays_share_the_work_and_send_nothing_twice
}

type Script = dyn Fn(&Outgoing) -> Outcome + Send + Sync;

/// Answers as the script says, and remembers whom it was given.
struct Broker {
    script: Box<Script>,
    seen: Mutex<Vec<i64>>,
    up: AtomicBool,
    /// Never answers.
    hangs: bool,
}

impl Broker {
    fn new(script: impl Fn(&Outgoing) -> Outcome + Send + Sync + 'static) -> Self {
        Self {
            script: Box::new(script),
            seen: Mutex::default(),
            up: AtomicBool::new(true),
            hangs: false,
        }
    }

    fn seen(&self) -> Vec<i64> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait]
impl Sink for Broker {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        // Others get a turn.
        sleep(Duration::from_millis(1)).await;
        if !self.up.load(Ordering::SeqCst) {
            return vec![Outcome::SinkDown("nobody is there".into()); batch.len()];
        }
        let mut seen = self.seen.lock().unwrap();
        seen.extend(batch.iter().map(|outgoing| outgoing.row_ref.seq));
        batch.iter().map(|outgoing| (self.script)(outgoing)).collect()
    }

    async fn check(&self) -> Result<()> {
        match self.up.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Unreachable, "nobody is there")),
        }
    }
}

fn quick() -> Settings {
    Settings {
        batch_size: 10,
        idle_time: Duration::from_millis(50),
        broker_outage_cooldown: Duration::from_millis(100),
        ..Settings::default()
    }
}

fn relay(scratch: &Scratch, sink: &Arc<Broker>, settings: Settings) -> DjangoRelay {
    let outbox = DjangoOutbox::new(&DjangoConfig::new(scratch.database.clone())).unwrap();
    DjangoRelay::new(outbox, Arc::clone(sink) as _, settings).unwrap()
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn everything_is_sent_in_order_and_deleted(scratch: Scratch) {
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    scratch.add_many(95).await;
    let sink = Arc::new(Broker::new(|_| Outcome::Delivered));
    let settings = Settings {
        liveness_file: Some(alive.clone()),
        ..quick()
    };
    let report = relay(&scratch, &sink, settings)
        .run_once(CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        report,
        Report {
            published: 95,
            ..Report::default()
        }
    );
    assert_eq!(scratch.count("celery_outbox").await, "0");
    let seen = sink.seen();
    assert!(seen.is_sorted() && seen.len() == 95, "{seen:?}");
    assert!(alive.exists());
}

async fn a_task_that_fails_backs_off_and_dies_with_its_reason(scratch: Scratch) {
    let good = scratch.add_fresh(1).await[0];
    let bad = scratch.add_fresh(1).await[0];
    let worn = scratch.add("NULL", "NULL", 9, 1).await;
    let odd = scratch.add_fresh(1).await[0];
    scratch
        .run(&format!("UPDATE celery_outbox SET options = '[]' WHERE id = {odd}"))
        .await;
    let sink = Arc::new(Broker::new(move |outgoing| match outgoing.row_ref.seq {
        id if id == bad => Outcome::Permanent("unroutable: nobody listens".into()),
        _ => Outcome::Delivered,
    }));
    let once = || relay(&scratch, &sink, quick()).run_once(CancellationToken::new());
    let report = once().await.unwrap();
    assert_eq!((report.published, report.failed, report.dead), (1, 2, 1));
    assert_eq!(sink.seen(), [good, bad]);
    let reason = scratch
        .value("SELECT failure_reason FROM celery_outbox_dead_letter")
        .await;
    assert!(reason.contains("max_retries"), "{reason}");
    let _ = worn;
    let after = scratch.seconds_to("retry_after");
    for delay in scratch.values(&format!("SELECT {after} FROM celery_outbox")).await {
        let delay: f64 = delay.parse().unwrap();
        assert!((90.0..=133.0).contains(&delay), "{delay}");
    }
    // Four failures more, each as soon as it is due.
    for _ in 0..4 {
        assert_eq!(once().await.unwrap(), Report::default(), "nothing is due yet");
        scratch.make_due().await;
        once().await.unwrap();
    }
    assert_eq!(scratch.count("celery_outbox").await, "0");
    let reasons = scratch
        .values("SELECT failure_reason FROM celery_outbox_dead_letter ORDER BY id")
        .await;
    assert_eq!(reasons.len(), 3);
    assert!(
        reasons.contains(&"unroutable: nobody listens".to_owned()),
        "{reasons:?}"
    );
    assert!(reasons.iter().any(|reason| reason.contains("options")), "{reasons:?}");
}

async fn a_broker_that_is_down_charges_nothing_and_is_waited_for(scratch: Scratch) {
    scratch.add_many(45).await;
    let sink = Arc::new(Broker::new(|_| Outcome::Delivered));
    sink.up.store(false, Ordering::SeqCst);
    let stop = CancellationToken::new();
    let running = tokio::spawn(relay(&scratch, &sink, quick()).run(stop.clone()));
    let deferred = "SELECT COUNT(*) FROM celery_outbox WHERE retry_after IS NOT NULL";
    until("a batch was put off", async || scratch.value(deferred).await == "10").await;
    assert_eq!(scratch.value("SELECT SUM(retries) FROM celery_outbox").await, "0");
    sink.up.store(true, Ordering::SeqCst);
    until("all are sent", async || scratch.count("celery_outbox").await == "0").await;
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.published, report.failed, report.dead), (45, 0, 0));
    assert_eq!(sink.seen().len(), 45);
}

async fn a_task_that_comes_too_early_is_kept_and_costs_nothing(scratch: Scratch) {
    let ids = scratch.add_fresh(2).await;
    let late = ids[0];
    let sink = Arc::new(Broker::new(move |outgoing| match outgoing.row_ref.seq == late {
        true => Outcome::NotYet(Reason::new("at noon").retry_after(Duration::from_secs(900))),
        false => Outcome::Delivered,
    }));
    let settings = Settings {
        max_retries: 1,
        ..quick()
    };
    let report = relay(&scratch, &sink, settings)
        .run_once(CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((report.published, report.held, report.dead), (1, 1, 0));
    let after = scratch.seconds_to("retry_after");
    let left = scratch.value(&format!("SELECT {after} FROM celery_outbox")).await;
    assert!((870.0..=901.0).contains(&left.parse().unwrap()), "{left}");
    assert_eq!(scratch.value("SELECT retries FROM celery_outbox").await, "0");
}

async fn a_stop_gives_back_what_was_not_sent(scratch: Scratch) {
    scratch.add_many(40).await;
    let sink = Arc::new(Broker {
        hangs: true,
        ..Broker::new(|_| Outcome::Delivered)
    });
    let stop = CancellationToken::new();
    let settings = Settings {
        shutdown_timeout: Duration::from_millis(200),
        ..quick()
    };
    let running = tokio::spawn(relay(&scratch, &sink, settings).run(stop.clone()));
    let claimed = "SELECT COUNT(*) FROM celery_outbox WHERE updated_at IS NOT NULL";
    until("a batch is on its way and one is waiting", async || {
        scratch.value(claimed).await == "20"
    })
    .await;
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!(
        report,
        Report {
            released: 10,
            ..Report::default()
        }
    );
    // What is with the broker may arrive, so that is left to the stale timeout.
    assert_eq!(scratch.value(claimed).await, "10");
    let other = Arc::new(Broker::new(|_| Outcome::Delivered));
    let report = relay(&scratch, &other, quick())
        .run_once(CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(report.published, 30);
}

async fn two_relays_share_the_work_and_send_nothing_twice(scratch: Scratch) {
    scratch.add_many(400).await;
    let sink = Arc::new(Broker::new(|_| Outcome::Delivered));
    let stop = CancellationToken::new();
    let running = [
        tokio::spawn(relay(&scratch, &sink, quick()).run(stop.clone())),
        tokio::spawn(relay(&scratch, &sink, quick()).run(stop.clone())),
    ];
    until("all are sent", async || scratch.count("celery_outbox").await == "0").await;
    stop.cancel();
    let mut published = 0;
    for running in running {
        published += running.await.unwrap().unwrap().published;
    }
    assert_eq!(published, 400);
    let mut seen = sink.seen();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 400);
    assert_eq!(sink.seen().len(), 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_makes_the_broker_close_comes_to_an_end_and_takes_no_other_with_it() {
    let scratch = Scratch::sqlite().await;
    let ids = scratch.add_fresh(3).await;
    let bad = ids[1];
    let sink = Arc::new(HangsUp { bad });
    let settings = Settings {
        max_retries: 2,
        backoff_time: Duration::from_millis(10),
        ..quick()
    };
    let outbox = DjangoOutbox::new(&DjangoConfig::new(scratch.database.clone())).unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(DjangoRelay::new(outbox, sink, settings).unwrap().run(stop.clone()));
    until("all have met their end", async || {
        scratch.count("celery_outbox").await == "0"
    })
    .await;
    stop.cancel();
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.published, report.dead), (2, 1));
    let reason = scratch
        .value("SELECT failure_reason FROM celery_outbox_dead_letter")
        .await;
    assert!(reason.contains("hung up"), "{reason}");
}

/// Nobody knows what became of a batch that the bad one is in.
struct HangsUp {
    bad: i64,
}

#[async_trait]
impl Sink for HangsUp {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let outcome = match batch.iter().any(|outgoing| outgoing.row_ref.seq == self.bad) {
            true => Outcome::Unknown("the broker hung up".into()),
            false => Outcome::Delivered,
        };
        vec![outcome; batch.len()]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_batches_as_allowed_are_with_the_broker_at_once() {
    for most in [1, 3] {
        let scratch = Scratch::sqlite().await;
        scratch.add_many(90).await;
        let sink = Arc::new(Counts::default());
        let settings = Settings {
            publish_concurrency: most,
            ..quick()
        };
        let outbox = DjangoOutbox::new(&DjangoConfig::new(scratch.database.clone())).unwrap();
        let relay = DjangoRelay::new(outbox, Arc::clone(&sink) as _, settings).unwrap();
        let report = relay.run_once(CancellationToken::new()).await.unwrap();
        assert_eq!(report.published, 90);
        assert_eq!(sink.most.load(Ordering::SeqCst), most);
    }
}

/// Remembers how many batches it had at once.
#[derive(Default)]
struct Counts {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl Sink for Counts {
    async fn publish(&self, batch: &[Arc<Outgoing>]) -> Vec<Outcome> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        sleep(Duration::from_millis(100)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        vec![Outcome::Delivered; batch.len()]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_past_their_retention_are_deleted() {
    let scratch = Scratch::sqlite().await;
    for days in [1, 40] {
        let dead_at = scratch.moment(-days * 86_400);
        scratch
            .run(&format!(
                "INSERT INTO celery_outbox_dead_letter (created_at, dead_at, retries, task_id, task_name, args, kwargs, options,
                     schema_version) VALUES ({dead_at}, {dead_at}, 5, 'd{days}', 'shop.add', '[]', '{{}}', '{{}}', 1)"
            ))
            .await;
    }
    let settings = Settings {
        dead_letter_retention: Some(Duration::from_secs(30 * 86_400)),
        ..quick()
    };
    let stop = CancellationToken::new();
    let sink = Arc::new(Broker::new(|_| Outcome::Delivered));
    let running = tokio::spawn(relay(&scratch, &sink, settings).run(stop.clone()));
    until("the old one is gone", async || {
        scratch.values("SELECT task_id FROM celery_outbox_dead_letter").await == ["d1"]
    })
    .await;
    stop.cancel();
    running.await.unwrap().unwrap();
}
