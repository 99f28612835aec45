//! One worker process.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Claim, WorkStore};
use sendoff_worker::{Worker, WorkerSettings};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::base;
use crate::journal::{Event, Journal};

const LEASE: Duration = Duration::from_secs(1);
/// How long a worker is away that loses its lease: long enough for another to have what it held.
pub(crate) const AWAY: Duration = Duration::from_secs(3);
const BATCH: usize = 25;

/// What a process is told, by variables.
pub(crate) struct Order {
    pub(crate) url: String,
    pub(crate) schema: String,
    /// The worker's name; processes may share one, and only their claims tell them apart then.
    pub(crate) name: String,
    pub(crate) by_hand: bool,
    pub(crate) journal: PathBuf,
}

impl Order {
    const URL: &str = "SENDOFF_WORKER_PROCESS_URL";
    const SCHEMA: &str = "SENDOFF_WORKER_PROCESS_SCHEMA";
    const NAME: &str = "SENDOFF_WORKER_PROCESS_NAME";
    const BY_HAND: &str = "SENDOFF_WORKER_PROCESS_BY_HAND";
    const JOURNAL: &str = "SENDOFF_WORKER_PROCESS_JOURNAL";

    /// The order of this process, if it is a worker.
    pub(crate) fn from_env() -> Option<Self> {
        let read = |name: &str| std::env::var(name).unwrap();
        std::env::var(Self::URL).ok().map(|url| Self {
            url,
            schema: read(Self::SCHEMA),
            name: read(Self::NAME),
            by_hand: read(Self::BY_HAND) == "true",
            journal: read(Self::JOURNAL).into(),
        })
    }

    pub(crate) fn variables(&self) -> [(&'static str, String); 5] {
        [
            (Self::URL, self.url.clone()),
            (Self::SCHEMA, self.schema.clone()),
            (Self::NAME, self.name.clone()),
            (Self::BY_HAND, self.by_hand.to_string()),
            (Self::JOURNAL, self.journal.to_str().unwrap().to_owned()),
        ]
    }
}

/// Works until it is killed.
pub(crate) fn work(order: Order) -> ! {
    // When the test is gone nobody is left to kill us.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = base::open(&order.url, &order.schema).unwrap().work;
        let journal = Journal::open(&order.journal);
        if order.by_hand {
            by_hand(store, &order.name, &journal).await;
        } else {
            by_loop(store, &order.name, journal).await;
        }
    });
    std::process::exit(1);
}

/// The ready-made loop: leases are renewed, marks go in batches.
async fn by_loop(store: Arc<dyn WorkStore>, name: &str, journal: Journal) {
    let worker = Worker::new(store).named(name).settings(WorkerSettings {
        lease: LEASE,
        batch: BATCH,
        concurrency: BATCH,
        idle_time: Duration::from_millis(50),
        ..WorkerSettings::default()
    });
    let journal = Arc::new(journal);
    let handler = |job: Arc<sendoff::store::Job>| {
        journal.note_handed([&*job]);
        async {
            sleep(Duration::from_millis(fastrand::u64(50..120))).await;
            Ok(())
        }
    };
    worker.run(handler, CancellationToken::new()).await.unwrap();
}

/// What the names of workers start with that are now and then slower than their lease.
pub(crate) const SLOW: &str = "slow";

/// Claims and marks without renewing anything.
async fn by_hand(store: Arc<dyn WorkStore>, name: &str, journal: &Journal) {
    let (is_slow, mut batches) = (name.starts_with(SLOW), 0);
    loop {
        // An error leaves it unknown what was done: the lease settles it.
        let Ok(jobs) = store.claim_batch(name, BATCH, LEASE).await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        if jobs.is_empty() {
            sleep(Duration::from_millis(50)).await;
            continue;
        }
        let claims: Vec<Claim> = jobs.iter().map(|job| job.claim).collect();
        journal.note_handed(&jobs);
        batches += 1;
        sleep(if is_slow && batches % 5 == 2 {
            AWAY
        } else {
            Duration::from_millis(fastrand::u64(50..120))
        })
        .await;
        if let Ok(lost) = store.mark_success(name, &claims).await {
            journal.note(Event::Refused, lost.iter().copied());
            let finished = claims.iter().filter(|claim| !lost.contains(claim));
            journal.note(Event::Finished, finished.copied());
        }
    }
}
