//! Changes by operators, made in batches, with progress.

use std::time::Duration;

use sendoff::store::{Filter, Pausable, Retention, RetryOptions, Status};
use sendoff::{Error, ErrorKind, Result};

use crate::filter::validate;
use crate::operator::{Operator, of_dead};
use crate::view::{AuditView, CleanView, KeyView, LaneView, PauseView, ReapView};

/// How many rows one transaction of a large change affects.
pub(crate) const AT_ONCE: usize = 1000;

/// Receives the number of rows that are done so far.
pub type Progress<'a> = &'a mut (dyn FnMut(u64) + Send);

impl Operator {
    /// The number of messages that match.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, and errors of the store.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        validate(filter)?;
        self.store.count(filter).await
    }

    /// The number of dead letters that match.
    ///
    /// # Errors
    /// As [`Operator::count`]; also when the filter asks for another status.
    pub async fn dead_count(&self, filter: &Filter) -> Result<u64> {
        self.count(&Filter {
            status: Some(Status::Dead),
            ..of_dead(filter)?
        })
        .await
    }

    /// Deletes dead letters that match, in batches. Messages that die while this runs are not deleted.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, and errors of the store; batches done before stay done.
    pub async fn dead_discard(&self, filter: &Filter, progress: Progress<'_>) -> Result<u64> {
        let filter = of_dead(filter)?;
        validate(&filter)?;
        let until = Some(self.store.now().await?);
        let (mut done, mut command) = (0, self.command());
        loop {
            let step = self.store.discard_dead(&filter, until, AT_ONCE, &mut command).await?;
            done += step;
            progress(done);
            if step < AT_ONCE as u64 {
                tracing::info!(
                    event = "dead_discarded",
                    who = self.who,
                    discarded = done,
                    "dead letters discarded"
                );
                return Ok(done);
            }
        }
    }

    /// Makes waiting deliveries that match due now, in batches: those in retry, including parked ones, and those whose
    /// sink is down. Scheduled messages are not changed unless they are named by id or `how` includes them: a retry
    /// after an outage must not send next week's messages.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, and errors of the store; batches done before stay done.
    pub async fn retry_waiting(&self, filter: &Filter, how: RetryOptions, progress: Progress<'_>) -> Result<u64> {
        of_waiting(filter)?;
        let how = meant(filter, how);
        let (mut due, mut after, mut command) = (0, None, self.command());
        loop {
            let step = self
                .store
                .retry_waiting(filter, how, after.as_ref(), AT_ONCE, &mut command)
                .await?;
            due += step.due;
            progress(due);
            after = step.next;
            if after.is_none() {
                break;
            }
        }
        tracing::info!(
            event = "waiting_retried",
            who = self.who,
            retried = due,
            reset = how.reset,
            "waiting deliveries are due now"
        );
        Ok(due)
    }

    /// The number of deliveries that [`Operator::retry_waiting`] would change.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid filter, and errors of the store.
    pub async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        of_waiting(filter)?;
        self.store.retry_waiting_count(filter, meant(filter, how)).await
    }

    /// Frees the lanes of relays whose lease has expired, and the jobs that their workers have not renewed for
    /// `stale_after`.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn reap(&self, stale_after: Duration) -> Result<ReapView> {
        Ok(self.store.reap_gone(stale_after, &self.who).await?.into())
    }

    /// Blocked keys, those with the most blocked messages first.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        Ok(self.store.keys(limit).await?.into_iter().map(Into::into).collect())
    }

    /// Releases a key: its messages no longer wait behind dead letters. Returns how many dead letters blocked the key.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when nothing blocks it, and errors of the store.
    pub async fn release_key(&self, key: &str, sink: Option<&str>) -> Result<u64> {
        let released = self.store.release_key(key, sink, &self.who).await?;
        if released == 0 {
            return Err(
                Error::new(ErrorKind::NotFound, format!("no dead letter blocks the key {key:?}"))
                    .because(
                        "the dead letter was released or retried already, or the failed message is still being retried",
                    )
                    .next_step("list blocked keys with `sendoff keys ls`"),
            );
        }
        Ok(released)
    }

    /// All lanes.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn lanes(&self) -> Result<Vec<LaneView>> {
        Ok(self.store.lane_views().await?.into_iter().map(Into::into).collect())
    }

    /// Pauses a topic or a sink. Returns false if it was already paused.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn pause(&self, what: &Pausable) -> Result<bool> {
        self.store.pause(what, &self.who).await
    }

    /// Ends a pause. Returns false if there was none.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn resume(&self, what: &Pausable) -> Result<bool> {
        self.store.resume(what, &self.who).await
    }

    /// All paused topics and sinks.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn pauses(&self) -> Result<Vec<PauseView>> {
        Ok(self.store.pauses().await?.into_iter().map(Into::into).collect())
    }

    /// The number of rows that are older than their retention.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn clean_count(&self, retention: &Retention) -> Result<u64> {
        Ok(self.store.clean_count(retention).await?.old)
    }

    /// Deletes rows that are older than their retention, in batches, and counts the remaining rows.
    ///
    /// # Errors
    /// Errors of the store; batches done before stay done.
    pub async fn clean_up(&self, retention: &Retention, progress: Progress<'_>) -> Result<CleanView> {
        let (mut deleted, mut command) = (0, self.command());
        loop {
            let step = self.store.clean_up(retention, AT_ONCE, &mut command).await?;
            deleted += step.deleted;
            progress(deleted);
            if !step.more {
                break;
            }
        }
        let remaining = self.store.clean_count(retention).await?.all;
        Ok(CleanView { deleted, remaining })
    }

    /// The newest entries of the audit, newest first.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        Ok(self.store.audit(limit).await?.into_iter().map(Into::into).collect())
    }
}

/// Checks a filter of waiting deliveries.
fn of_waiting(filter: &Filter) -> Result<()> {
    validate(filter)?;
    if filter.reason.is_some() || filter.died_from.is_some() || filter.died_until.is_some() {
        return Err(Error::new(
            ErrorKind::Invalid,
            "waiting deliveries have neither a reason nor a time of death",
        )
        .next_step("use `sendoff dead retry` for dead letters, or leave these filters out"));
    }
    Ok(())
}

/// A message that is named by id is included even if it is scheduled.
fn meant(filter: &Filter, how: RetryOptions) -> RetryOptions {
    RetryOptions {
        scheduled: how.scheduled || !filter.ids.is_empty(),
        ..how
    }
}
