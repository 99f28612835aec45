//! A worker as an application holds it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Claim, Item, ItemState, WorkStore, lease_lost};
use sendoff::{Result, Waker};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::run::Running;
use crate::{Failure, WorkReport, WorkerSettings};

/// Claims items under a name of its own and marks them. Cheap to clone; clones are the same worker.
#[derive(Clone)]
pub struct Worker {
    pub(crate) store: Arc<dyn WorkStore>,
    pub(crate) name: Arc<str>,
    pub(crate) settings: WorkerSettings,
    pub(crate) waker: Waker,
}

impl Worker {
    /// A worker with a name that no other has, and the usual settings.
    pub fn new(store: Arc<dyn WorkStore>) -> Self {
        Self {
            store,
            name: format!("worker {}", Uuid::new_v4()).into(),
            settings: WorkerSettings::default(),
            waker: Waker::new(),
        }
    }

    /// A name for people, such as the host's; a random part is added, so that a process that was started again is not
    /// taken for the one before it.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        let start: String = name.chars().filter(|letter| *letter != '\0').take(50).collect();
        self.name = format!("{start} {}", Uuid::new_v4()).into();
        self
    }

    /// Other settings.
    #[must_use]
    pub fn settings(mut self, settings: WorkerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Listens to the bell of an outbox in the same process, so that new items need not wait for the next look.
    #[must_use]
    pub fn waker(mut self, waker: Waker) -> Self {
        self.waker = waker;
        self
    }

    /// Its name, as it stands in `lease_owner`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Claims up to `limit` items for the time of the lease.
    ///
    /// # Errors
    /// As [`WorkStore::claim_batch`].
    pub async fn claim_batch(&self, limit: usize) -> Result<Vec<Item>> {
        self.store.claim_batch(&self.name, limit, self.settings.lease).await
    }

    /// Renews the lease on items, for work that takes long.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when one of them is not held any more; the others are renewed all the same.
    pub async fn extend(&self, items: &[Item]) -> Result<()> {
        let claims = claims(items);
        let lost = self.store.extend(&self.name, &claims, self.settings.lease).await?;
        self.unless_lost("the lease could not be renewed", &lost)
    }

    /// The item is done.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when it is not held any more: another worker does it again, or has done it.
    pub async fn mark_success(&self, item: &Item) -> Result<()> {
        self.mark_success_many(std::slice::from_ref(item)).await
    }

    /// All of these are done.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when one of them is not held any more; the others are marked all the same.
    pub async fn mark_success_many(&self, items: &[Item]) -> Result<()> {
        let lost = self.store.mark_success(&self.name, &claims(items)).await?;
        self.unless_lost("the item could not be marked as done", &lost)
    }

    /// The attempt failed, and the next one is due after `next_attempt`. Without an attempt left the item has failed;
    /// the answer tells.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when it is not held any more.
    pub async fn mark_retry(&self, item: &Item, next_attempt: Duration, error: &str) -> Result<ItemState> {
        self.store.mark_retry(&self.name, item.claim, next_attempt, error).await
    }

    /// The item failed for good.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when it is not held any more.
    pub async fn mark_failed(&self, item: &Item, error: &str) -> Result<()> {
        self.store.mark_failed(&self.name, item.claim, error).await
    }

    /// Gives items back unworked: due at once, and no attempt is charged. Those that are not held are passed over.
    ///
    /// # Errors
    /// What the database says.
    pub async fn release(&self, items: &[Item]) -> Result<()> {
        self.store.release(&self.name, &claims(items)).await.map(drop)
    }

    /// Works until `stop` is cancelled: claims items, hands them to `handler`, renews their leases, marks them, and tries
    /// failed ones again later. A handler that panics has failed for this attempt. The work on an item whose lease was lost
    /// is dropped at its next await.
    ///
    /// On `stop` it finishes what is being worked on, and gives back the rest at once.
    ///
    /// # Errors
    /// What the database says and does not pass by itself, such as missing tables or rights. What passes is waited for.
    pub async fn run<H, F>(&self, handler: H, stop: CancellationToken) -> Result<WorkReport>
    where
        H: Fn(Arc<Item>) -> F,
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        Running::new(self.clone(), handler).until(stop).await
    }

    fn unless_lost(&self, what: &str, lost: &[Claim]) -> Result<()> {
        if lost.is_empty() {
            return Ok(());
        }
        Err(lease_lost(what, &self.name))
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

fn claims(items: &[Item]) -> Vec<Claim> {
    items.iter().map(|item| item.claim).collect()
}
