//! The worker that applications use.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sendoff::store::{Claim, Job, JobState, WorkStore, lease_lost};
use sendoff::{Result, Waker};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::run::Running;
use crate::{Failure, WorkReport, WorkerSettings};

/// Claims jobs under a unique name and marks them. A worker is cheap to clone; clones are the same worker.
#[derive(Clone)]
pub struct Worker {
    pub(crate) store: Arc<dyn WorkStore>,
    pub(crate) name: Arc<str>,
    topics: Arc<[String]>,
    pub(crate) settings: WorkerSettings,
    pub(crate) waker: Waker,
}

impl Worker {
    /// A worker with a unique name and the default settings.
    pub fn new(store: Arc<dyn WorkStore>) -> Self {
        Self {
            store,
            name: format!("worker {}", Uuid::new_v4()).into(),
            topics: Arc::default(),
            settings: WorkerSettings::default(),
            waker: Waker::new(),
        }
    }

    /// Sets a name for people, such as the host's. A random part is added, so that a restarted process is not mistaken
    /// for the previous one.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        let start: String = name.chars().filter(|letter| *letter != '\0').take(50).collect();
        self.name = format!("{start} {}", Uuid::new_v4()).into();
        self
    }

    /// Claims only jobs with one of these topics, so that workers of several kinds can share the table. Without topics
    /// the worker claims all jobs. Jobs whose topic no worker claims stay pending.
    #[must_use]
    pub fn topics(mut self, topics: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.topics = topics.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the settings of the worker.
    #[must_use]
    pub fn settings(mut self, settings: WorkerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Uses the wake source of an outbox in the same process, so that new jobs do not wait for the next poll.
    #[must_use]
    pub fn waker(mut self, waker: Waker) -> Self {
        self.waker = waker;
        self
    }

    /// The worker's name, as in the column `lease_owner`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Claims up to `limit` jobs of the worker's [topics](Worker::topics), with the lease of the settings.
    ///
    /// # Errors
    /// As [`WorkStore::claim_topics`].
    pub async fn claim_batch(&self, limit: usize) -> Result<Vec<Job>> {
        let lease = self.settings.lease;
        self.store.claim_topics(&self.name, &self.topics, limit, lease).await
    }

    /// Renews the lease on jobs that take long.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when the lease on one of them was lost; the others are still renewed.
    pub async fn extend(&self, jobs: &[Job]) -> Result<()> {
        let claims = claims(jobs);
        let lost = self.store.extend(&self.name, &claims, self.settings.lease).await?;
        self.unless_lost("could not renew the lease", &lost)
    }

    /// Marks a job as completed.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when the lease was lost: another worker does the job again, or has done it.
    pub async fn mark_success(&self, job: &Job) -> Result<()> {
        self.mark_success_many(std::slice::from_ref(job)).await
    }

    /// Marks jobs as completed.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when the lease on one of them was lost; the others are still marked.
    pub async fn mark_success_many(&self, jobs: &[Job]) -> Result<()> {
        let lost = self.store.mark_success(&self.name, &claims(jobs)).await?;
        self.unless_lost("could not mark the job as completed", &lost)
    }

    /// Marks an attempt as failed; the next one is due after `next_attempt`. If no attempt is left, the job has failed.
    /// Returns the job's new state.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when the lease was lost.
    pub async fn mark_retry(&self, job: &Job, next_attempt: Duration, error: &str) -> Result<JobState> {
        self.store.mark_retry(&self.name, job.claim, next_attempt, error).await
    }

    /// Marks a job as failed: it is not tried again.
    ///
    /// # Errors
    /// [`sendoff::ErrorKind::LeaseLost`] when the lease was lost.
    pub async fn mark_failed(&self, job: &Job, error: &str) -> Result<()> {
        self.store.mark_failed(&self.name, job.claim, error).await
    }

    /// Releases jobs without running them: they are due now, and no attempt is charged. Jobs whose lease was lost are
    /// skipped.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn release(&self, jobs: &[Job]) -> Result<()> {
        self.store.release(&self.name, &claims(jobs)).await.map(drop)
    }

    /// Works until `stop` is cancelled: claims jobs, passes them to `handler`, renews their leases, marks them, and tries
    /// failed ones again later. A panic of the handler fails the attempt. Work on a job whose lease was lost is dropped at
    /// its next await.
    ///
    /// On `stop` it finishes the running jobs, and immediately gives back the rest.
    ///
    /// # Errors
    /// Permanent errors of the database, such as missing tables or privileges. After temporary errors it tries again.
    pub async fn run<H, F>(&self, handler: H, stop: CancellationToken) -> Result<WorkReport>
    where
        H: Fn(Arc<Job>) -> F,
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
            .field("topics", &self.topics)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

fn claims(jobs: &[Job]) -> Vec<Claim> {
    jobs.iter().map(|job| job.claim).collect()
}
