//! What every case about jobs begins with.

use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Claim, Job, WorkStore};
use sendoff::{Emitted, Message, Result};

use super::scene::{LONG_LEASE, Scene, eventually};

/// A lease that is over soon.
pub(super) const SHORT_LEASE: Duration = Duration::from_millis(60);

impl Scene {
    pub(super) fn work(&self) -> Arc<dyn WorkStore> {
        self.subject.work.clone().expect("the store has jobs")
    }

    /// Emits jobs in one transaction and commits it.
    pub(super) async fn emit_jobs(&self, jobs: impl IntoIterator<Item = Message>) -> Result<Vec<Emitted>> {
        let mut tx = self.work().begin_jobs().await?;
        let emitted = tx.emit(&jobs.into_iter().collect::<Vec<_>>()).await?;
        tx.commit().await?;
        Ok(emitted)
    }

    /// Claims exactly one, for long.
    pub(super) async fn claim_one(&self, worker: &str) -> Result<Job> {
        let mut jobs = self.work().claim_batch(worker, 1, LONG_LEASE).await?;
        assert_eq!(jobs.len(), 1, "one job is due");
        Ok(jobs.remove(0))
    }

    /// Claims as soon as something is due.
    pub(super) async fn claim_when_due(&self, worker: &str, lease: Duration) -> Result<Vec<Job>> {
        let (work, found) = (self.work(), std::sync::Mutex::new(Vec::new()));
        let (work, found) = (&work, &found);
        eventually("a job becomes due", async || {
            let jobs = work.claim_batch(worker, 1000, lease).await?;
            let any = !jobs.is_empty();
            found.lock().unwrap().extend(jobs);
            Ok(any)
        })
        .await?;
        Ok(std::mem::take(&mut *found.lock().unwrap()))
    }
}

pub(super) fn claims(jobs: &[Job]) -> Vec<Claim> {
    jobs.iter().map(|job| job.claim).collect()
}
