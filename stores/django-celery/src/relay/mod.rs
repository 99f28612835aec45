//! The relay: claims, publishes and settles rows at the same time.

mod claiming;
mod decide;
mod hand;
mod janitor;
mod liveness;
mod monitor;
mod publish;
mod publishing;
mod quarantine;
mod report;
mod settings;
mod settling;

use std::sync::Arc;

use sendoff::{Error, ErrorKind, Outgoing, Result, Sink};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use monitor::{Beat, Monitor, Settled};
pub use report::Report;
pub use settings::Settings;

use self::hand::Hand;
use crate::{Claim, DjangoOutbox, Settlement, Stamp};

/// Delivers the rows of `celery_outbox` to a broker.
///
/// - A row is claimed before it is sent and deleted after the broker confirmed it: at least once.
/// - A row that fails is tried again after a delay, and is a dead letter after `max_retries` attempts, with the reason.
/// - A broker that is down costs no attempt. Nothing more is claimed until it answers.
/// - A stop gives back what was claimed and not sent, for others to take at once.
pub struct DjangoRelay {
    outbox: DjangoOutbox,
    sink: Arc<dyn Sink>,
    settings: Arc<Settings>,
    monitor: Option<Arc<dyn Monitor>>,
}

/// Rows on their way from claiming to publishing.
struct Claimed {
    claim: Claim,
    /// The rows as tasks, in their order.
    outgoing: Vec<Result<Arc<Outgoing>>>,
    /// Before which they were asked for: the stamp is not older.
    asked_at: Instant,
}

/// What is to be written back.
struct Settling {
    decided_at: Instant,
    stamp: Stamp,
    settlement: Settlement,
}

impl DjangoRelay {
    /// Creates a relay.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for settings that cannot be used.
    pub fn new(outbox: DjangoOutbox, sink: Arc<dyn Sink>, settings: Settings) -> Result<Self> {
        settings.validate()?;
        Ok(Self {
            outbox,
            sink,
            settings: Arc::new(settings),
            monitor: None,
        })
    }

    /// Adds a monitor, which gets reports about the relay.
    #[must_use]
    pub fn monitor(mut self, monitor: Arc<dyn Monitor>) -> Self {
        self.monitor = Some(monitor);
        self
    }

    /// Runs until `stop` is cancelled. If the database cannot be reached, the relay waits for it.
    ///
    /// # Errors
    /// Only when a part of it panicked.
    pub async fn run(self, stop: CancellationToken) -> Result<Report> {
        self.work(stop, false).await
    }

    /// Delivers the rows that are eligible now, and returns.
    ///
    /// # Errors
    /// What kept it from claiming.
    pub async fn run_once(self, stop: CancellationToken) -> Result<Report> {
        self.work(stop, true).await
    }

    async fn work(self, stop: CancellationToken, once: bool) -> Result<Report> {
        let Self {
            outbox,
            sink,
            settings,
            monitor,
        } = self;
        let hand = Arc::new(Hand::new(monitor));
        // One claim waits while another is with the broker: the next one is then there without a pause.
        let (claimed, claims) = mpsc::channel(1);
        let (settled, settlements) = mpsc::channel(2);
        let (down, is_down) = watch::channel(false);
        let janitor = tokio::spawn(janitor::run(outbox.clone(), Arc::clone(&settings)));
        let claiming = claiming::Claiming {
            outbox: outbox.clone(),
            settings: Arc::clone(&settings),
            claimed,
            hand: Arc::clone(&hand),
            is_down,
            stop: stop.clone(),
            once,
        };
        let publishing = publishing::Publishing {
            sink: Arc::clone(&sink),
            settings: Arc::clone(&settings),
            claims,
            hand: Arc::clone(&hand),
            settled,
            down,
            stop: stop.clone(),
        };
        let settling = tokio::spawn(settling::run(outbox, settlements, hand, settings, stop));
        let claiming = tokio::spawn(claiming.run());
        let publishing = tokio::spawn(publishing.run());
        let claimed = claiming.await;
        let published = publishing.await;
        let report = settling.await;
        janitor.abort();
        sink.close().await;
        claimed.map_err(panicked)??;
        published.map_err(panicked)?;
        report.map_err(panicked)
    }
}

fn panicked(error: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Backend, "a task of the relay panicked")
        .because(error.to_string())
        .next_step("find the panic in the log above this line, and report it as a bug")
}
