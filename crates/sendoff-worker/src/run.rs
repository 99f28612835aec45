//! The ready-made loop.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sendoff::store::{Claim, Item, ItemState};
use sendoff::{ErrorKind, Result};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::hands::{Ended, Hands, words_of};
use crate::{Failure, WorkReport, Worker};

/// A worker at work. Every item that it holds is in exactly one of `queue`, `hands` and `done`.
pub(crate) struct Running<H> {
    worker: Worker,
    handler: H,
    /// Claimed, and not begun.
    queue: VecDeque<Arc<Item>>,
    hands: Hands,
    /// Done, and not marked yet.
    done: Vec<Claim>,
    /// When to look for items again.
    look_at: Instant,
    report: WorkReport,
    rng: fastrand::Rng,
}

impl<H, F> Running<H>
where
    H: Fn(Arc<Item>) -> F,
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
            let Some(item) = self.queue.pop_front() else { return };
            // A handler may panic before there is anything to wait for: that ends this attempt, not the loop.
            let begun = catch_unwind(AssertUnwindSafe(|| (self.handler)(item.clone())));
            let begun = begun.map_err(|panic| Failure::Transient(words_of(&*panic)));
            self.hands.start(item, async move { begun?.await });
        }
    }

    async fn claim(&mut self) -> Result<()> {
        let idle = Instant::now() + self.worker.settings.idle_time;
        match self.worker.claim_batch(self.worker.settings.batch.max(1)).await {
            Ok(items) => {
                if items.is_empty() {
                    self.look_at = idle;
                }
                self.queue.extend(items.into_iter().map(Arc::new));
                Ok(())
            }
            Err(error) if error.is_temporary() => {
                tracing::warn!(event = "items_claim_failed", %error, "items could not be claimed; trying again");
                self.look_at = idle;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Renews all leases, and drops what was lost.
    async fn renew(&mut self) {
        let waiting = self.queue.iter().map(|item| item.claim);
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
                        event = "item_lease_lost",
                        seq = claim.seq,
                        "the lease on an item was lost; its work is dropped"
                    );
                    self.hands.drop_work(claim);
                    self.queue.retain(|item| item.claim != claim);
                    self.done.retain(|done| *done != claim);
                }
            }
            // The next heartbeat tries again; marks are checked by the database in any case.
            Err(error) => tracing::warn!(event = "items_renew_failed", %error, "leases on items could not be renewed"),
        }
    }

    async fn settle(&mut self, ended: Vec<Ended>) -> Result<()> {
        for (item, outcome) in ended {
            match outcome {
                Ok(()) => self.done.push(item.claim),
                Err(failure) => self.mark_failure(&item, failure).await?,
            }
        }
        self.mark_done().await
    }

    /// Marks what is done. What could not be marked for now stays, and its lease is renewed.
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
                tracing::warn!(event = "items_settle_failed", %error, "items could not be marked as done; trying again");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn mark_failure(&mut self, item: &Item, failure: Failure) -> Result<()> {
        let marked = match &failure {
            Failure::Permanent(error) => self.worker.mark_failed(item, error).await.map(|()| ItemState::Failed),
            Failure::RetryIn(delay, error) => self.worker.mark_retry(item, *delay, error).await,
            Failure::Transient(error) => {
                let failed_before = item.attempt.saturating_sub(1);
                let delay = self.worker.settings.retry.delay(failed_before, &mut self.rng);
                self.worker.mark_retry(item, delay, error).await
            }
        };
        match marked {
            Ok(ItemState::Failed) => self.report.failed += 1,
            Ok(_) => self.report.retried += 1,
            Err(error) if error.kind() == ErrorKind::LeaseLost => self.report.lost += 1,
            // It comes back by itself when its lease runs out, and its attempt is charged already.
            Err(error) if error.is_temporary() => {
                self.report.lost += 1;
                tracing::warn!(event = "items_settle_failed", %error, seq = item.claim.seq, "a failure could not be noted");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn give_back_queue(&mut self) {
        let rest: Vec<Claim> = self.queue.drain(..).map(|item| item.claim).collect();
        if rest.is_empty() {
            return;
        }
        match self.worker.store.release(&self.worker.name, &rest).await {
            Ok(lost) => self.report.released += (rest.len() - lost.len()) as u64,
            // They come back by themselves when their lease runs out.
            Err(error) => tracing::warn!(event = "items_release_failed", %error, "items could not be given back"),
        }
    }
}
