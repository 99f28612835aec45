//! What every case begins with.

use std::future::Future;
use std::time::{Duration, SystemTime};

use sendoff::store::{Filter, Status, Stored};
use sendoff::{Emitted, Message, Result, Uuid};
use tokio::time::{Instant, sleep};

use super::manual_relay::ManualRelay;
use super::{Capabilities, Subject};

/// How long a condition is waited for that should come true at once.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A lease that does not run out during a case.
pub(super) const LONG_LEASE: Duration = Duration::from_secs(300);

/// How coarse a database's clock may be.
pub(super) const TICK: Duration = Duration::from_millis(5);

/// The store under test in a case.
pub(super) struct Scene {
    pub(super) subject: Subject,
    pub(super) capabilities: Capabilities,
}

impl Scene {
    pub(super) fn new(subject: Subject, capabilities: Capabilities) -> Self {
        Self { subject, capabilities }
    }

    /// Another store on the same database.
    pub(super) async fn second(&self) -> Result<Self> {
        Ok(Self::new(self.subject.database.open().await?, self.capabilities))
    }

    /// Emits in one transaction and commits it.
    pub(super) async fn emit(&self, messages: impl IntoIterator<Item = Message>) -> Result<Vec<Emitted>> {
        let mut tx = self.subject.emit.begin().await?;
        let emitted = tx.emit(&messages.into_iter().collect::<Vec<_>>()).await?;
        tx.commit().await?;
        Ok(emitted)
    }

    /// Emits as many messages of one key, numbered from 0 in their payload, in one transaction.
    pub(super) async fn emit_key(&self, key: &str, count: usize) -> Result<Vec<Uuid>> {
        let emitted = self.emit((0..count).map(|n| numbered(key, n))).await?;
        Ok(emitted.into_iter().map(Emitted::id).collect())
    }

    /// A relay that is driven by hand, and holds every lane.
    pub(super) async fn relay(&self) -> Result<ManualRelay> {
        let mut relay = self.idle_relay().await?;
        relay.acquire(usize::MAX).await?;
        Ok(relay)
    }

    /// A relay that is driven by hand, and holds no lane.
    pub(super) async fn idle_relay(&self) -> Result<ManualRelay> {
        ManualRelay::register(self.subject.relay.clone(), LONG_LEASE).await
    }

    /// The one row that there is of a message.
    pub(super) async fn find_one(&self, id: Uuid) -> Result<Stored> {
        let mut found = self.subject.operate.find(id).await?;
        assert_eq!(found.len(), 1, "rows of one message: {found:#?}");
        Ok(found.remove(0))
    }

    /// The row of one delivery of a message.
    pub(super) async fn find_delivery(&self, id: Uuid, sink: &str) -> Result<Stored> {
        let found = self.subject.operate.find(id).await?;
        let mut of_delivery = found.iter().filter(|stored| stored.sink == sink);
        match (of_delivery.next(), of_delivery.next()) {
            (Some(stored), None) => Ok(stored.clone()),
            _ => panic!("not one row of the delivery {sink:?}: {found:#?}"),
        }
    }

    /// How many messages and deliveries have this status.
    pub(super) async fn count(&self, status: Status) -> Result<usize> {
        let filter = Filter {
            status: Some(status),
            ..Filter::default()
        };
        Ok(self.subject.operate.list(&filter, 100_000).await?.messages.len())
    }

    /// The database's clock, as the creation time of a message that is emitted for it, and that no relay sees today.
    pub(super) async fn now(&self) -> Result<SystemTime> {
        let probe = self
            .emit([plain("suite.clock").delay(Duration::from_secs(86_400))])
            .await?;
        Ok(self.find_one(probe[0].id()).await?.created_at)
    }

    /// Waits until so much time has passed on the database's clock.
    pub(super) async fn pass(&self, time: Duration) -> Result<()> {
        let began = self.now().await?;
        eventually("time passes", async || {
            let passed = self.now().await?.duration_since(began).unwrap_or_default();
            Ok(passed > time + TICK)
        })
        .await
    }
}

/// A message of a key with a number in its payload.
pub(super) fn numbered(key: &str, n: usize) -> Message {
    Message::json("suite.numbered", &n).expect("numbers serialise").key(key)
}

/// A message without a key.
pub(super) fn plain(topic: &str) -> Message {
    Message::json(topic, &()).expect("nothing serialises")
}

/// Waits until `check` says that it is so.
pub(super) async fn eventually<F: Future<Output = Result<bool>>>(
    what: &str,
    mut check: impl FnMut() -> F,
) -> Result<()> {
    let began = Instant::now();
    while !check().await? {
        assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
        sleep(Duration::from_millis(3)).await;
    }
    Ok(())
}

/// Tries again while the store says that it is right to.
pub(super) async fn persistently<T, F: Future<Output = Result<T>>>(mut call: impl FnMut() -> F) -> Result<T> {
    let began = Instant::now();
    loop {
        match call().await {
            Err(error) if error.is_temporary() && began.elapsed() < PATIENCE => {
                sleep(Duration::from_millis(2)).await;
            }
            answer => return answer,
        }
    }
}
