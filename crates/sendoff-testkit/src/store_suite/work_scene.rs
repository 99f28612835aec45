//! What every case about items begins with.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Claim, Item, WorkStore};
use sendoff::{Emitted, Message, Result};

use super::scene::{LONG_LEASE, Scene, eventually};

/// A lease that is over soon.
pub(super) const SHORT_LEASE: Duration = Duration::from_millis(60);

impl Scene {
    pub(super) fn work(&self) -> Arc<dyn WorkStore> {
        self.subject.work.clone().expect("the store has items")
    }

    /// Emits items in one transaction and commits it.
    pub(super) async fn emit_items(&self, items: impl IntoIterator<Item = Message>) -> Result<Vec<Emitted>> {
        let mut tx = self.work().begin_items().await?;
        let emitted = tx.emit(&items.into_iter().collect::<Vec<_>>()).await?;
        tx.commit().await?;
        Ok(emitted)
    }

    /// Claims exactly one, for long.
    pub(super) async fn claim_one(&self, worker: &str) -> Result<Item> {
        let mut items = self.work().claim_batch(worker, 1, LONG_LEASE).await?;
        assert_eq!(items.len(), 1, "one item is due");
        Ok(items.remove(0))
    }

    /// Claims as soon as something is due.
    pub(super) async fn claim_when_due(&self, worker: &str, lease: Duration) -> Result<Vec<Item>> {
        let (work, found) = (self.work(), std::sync::Mutex::new(Vec::new()));
        let (work, found) = (&work, &found);
        eventually("an item becomes due", async || {
            let items = work.claim_batch(worker, 1000, lease).await?;
            let any = !items.is_empty();
            found.lock().unwrap().extend(items);
            Ok(any)
        })
        .await?;
        Ok(std::mem::take(&mut *found.lock().unwrap()))
    }
}

pub(super) fn claims(items: &[Item]) -> Vec<Claim> {
    items.iter().map(|item| item.claim).collect()
}
