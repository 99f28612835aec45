//! The ready-made loop.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sendoff::store::{Claim, Job, JobState};
use sendoff::{ErrorKind, Result};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::hands::{Ended, Hands, words_of};
use crate::{Failure, WorkReport, Worker};

/// A running worker. Every job that it holds is in exactly one of `queue`, `hands` and `done`.
pub(crate) struct Running<H> {
    worker: Worker,
    handler: H,
    /// Claimed and not started.
    queue: VecDeque<Arc<Job>>,
    hands: Hands,
    /// Done and not marked yet.
    done: Vec<Claim>,
    /// When to claim jobs again.
    look_at: Instant,
    report: WorkReport,
    rng: fastrand::Rng,
}

impl<H, F> Running<H>
where
    H: Fn(Arc<Job>) -> F,
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    pub(crate) fn new(worker: Worker, handler: H) -> Self {
        Self {
            worker,
            handler,
            queue: VecDeque::new(),
            hands: Hands::default(),
            done: Vec::new(),
            look_at: Instant::now(),
            report: WorkReport::default(),
            rng: fastrand::Rng::new(),
        }
    }

    pub(crate) async fn until(mut self, stop: CancellationToken) -> Result<WorkReport> {
        // A third: two heartbeats may be missed before anything is lost.
        let beat = (self.worker.settings.lease / 3).max(std::time::Duration::from_millis(1));
        let mut heartbeat = interval_at(Instant::now() + beat, beat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let waker = self.worker.waker.clone();
        loop {
            if stop.is_cancelled() {
                self.give_back_queue().await;
                if self.hands.is_empty() && self.done.is_empty() {
                    return Ok(self.report);
                }
            } else {
                self.start_work();
            }
            let has_room = self.queue.is_empty() && self.hands.len() < self.worker.settings.concurrency.max(1);
            let looks = has_room && !stop.is_cancelled();
            tokio::select! {
                biased;
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                _ = heartbeat.tick() => {
                    self.renew().await;
                    self.mark_done().await?;
                }
                ended = self.hands.ended(), if !self.hands.is_empty() => self.settle(ended).await?,
                () = sleep_until(self.look_at), if looks => self.claim().await?,
                () = waker.woken(), if looks => self.look_at = Instant::now(),
            }
        }
    }

    fn start_work(&mut self) {
        while self.hands.len() < self.worker.settings.concurrency.max(1) {
            let Some(job) = self.queue.pop_front() else { return };
            // A handler may panic before it returns a future: that ends this attempt, not the loop.
            let begun = catch_unwind(AssertUnwindSafe(|| (self.handler)(job.clone())));
            let begun = begun.map_err(|panic| Failure::Transient(words_of(&*panic)));
            self.hands.start(job, async move { begun?.await });
        }
    }

    async fn claim(&mut self) -> Result<()> {
        let idle = Instant::now() + self.worker.settings.idle_time;
        match self.worker.claim_batch(self.worker.settings.batch.max(1)).await {
            Ok(jobs) => {
                if jobs.is_empty() {
                    self.look_at = idle;
                }
                self.queue.extend(jobs.into_iter().map(Arc::new));
                Ok(())
            }
            Err(error) if error.is_temporary() => {
                tracing::warn!(event = "jobs_claim_failed", %error, "cannot claim jobs; will retry");
                self.look_at = idle;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Renews all leases, and drops jobs whose lease was lost.
    async fn renew(&mut self) {
        let waiting = self.queue.iter().map(|job| job.claim);
        let held: Vec<Claim> = waiting
            .chain(self.hands.claims())
            .chain(self.done.iter().copied())
            .collect();
        let (worker, lease) = (&self.worker, self.worker.settings.lease);
        match worker.store.extend(&worker.name, &held, lease).await {
            Ok(lost) => {
                for claim in lost {
                    self.report.lost += 1;
                    tracing::warn!(
                        event = "job_lease_lost",
                        seq = claim.seq,
                        "lease on a job lost; the work on this job is dropped"
                    );
                    self.hands.drop_work(claim);
                    self.queue.retain(|job| job.claim != claim);
                    self.done.retain(|done| *done != claim);
                }
            }
            // The next heartbeat tries again; the database checks the lease with every mark anyway.
            Err(error) => {
                tracing::warn!(
                    event = "jobs_renew_failed", %error,
                    "cannot renew the leases on jobs; will retry with the next heartbeat"
                );
            }
        }
    }

    async fn settle(&mut self, ended: Vec<Ended>) -> Result<()> {
        for (job, outcome) in ended {
            match outcome {
                Ok(()) => self.done.push(job.claim),
                Err(failure) => self.mark_failure(&job, failure).await?,
            }
        }
        self.mark_done().await
    }

    /// Marks jobs that are done. If that fails temporarily, they stay in the list and their leases are renewed.
    async fn mark_done(&mut self) -> Result<()> {
        if self.done.is_empty() {
            return Ok(());
        }
        match self.worker.store.mark_success(&self.worker.name, &self.done).await {
            Ok(lost) => {
                self.report.lost += lost.len() as u64;
                self.report.completed += (self.done.len() - lost.len()) as u64;
                self.done.clear();
                Ok(())
            }
            Err(error) if error.is_temporary() => {
                tracing::warn!(event = "jobs_settle_failed", %error, "cannot mark jobs as completed; will retry");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn mark_failure(&mut self, job: &Job, failure: Failure) -> Result<()> {
        let marked = match &failure {
            Failure::Permanent(error) => self.worker.mark_failed(job, error).await.map(|()| JobState::Failed),
            Failure::RetryIn(delay, error) => self.worker.mark_retry(job, *delay, error).await,
            Failure::Transient(error) => {
                let failed_before = job.attempt.saturating_sub(1);
                let delay = self.worker.settings.retry.delay(failed_before, &mut self.rng);
                self.worker.mark_retry(job, delay, error).await
            }
        };
        match marked {
            Ok(JobState::Failed) => self.report.failed += 1,
            Ok(_) => self.report.retried += 1,
            Err(error) if error.kind() == ErrorKind::LeaseLost => self.report.lost += 1,
            // A worker claims it again when its lease expires; its attempt is already charged.
            Err(error) if error.is_temporary() => {
                self.report.lost += 1;
                tracing::warn!(
                    event = "jobs_settle_failed", %error, seq = job.claim.seq,
                    "cannot record the failure of a job; it is claimed again when its lease expires"
                );
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn give_back_queue(&mut self) {
        let rest: Vec<Claim> = self.queue.drain(..).map(|job| job.claim).collect();
        if rest.is_empty() {
            return;
        }
        match self.worker.store.release(&self.worker.name, &rest).await {
            Ok(lost) => self.report.released += (rest.len() - lost.len()) as u64,
            // Workers claim them again when their leases expire.
            Err(error) => {
                tracing::warn!(
                    event = "jobs_release_failed", %error,
                    "cannot release jobs; they are claimed again when their leases expire"
                );
            }
        }
    }
}
