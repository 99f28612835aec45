//! Changing things: in batches, telling how far it is.

use std::time::Duration;

use sendoff::store::{Filter, Hasten, Pausable, Status, Windows};
use sendoff::{Error, ErrorKind, Result};

use crate::filter::validate;
use crate::operator::{Operator, of_dead};
use crate::view::{AuditView, CleanView, KeyView, LaneView, PauseView, ReapView};

/// How many rows one transaction of a large change touches.
pub(crate) const AT_ONCE: usize = 1000;

/// Is told how many have been done so far.
pub type Progress<'a> = &'a mut (dyn FnMut(u64) + Send);

impl Operator {
    /// How many messages fit.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter that makes no sense, and what the store says.
    pub async fn count(&self, filter: &Filter) -> Result<u64> {
        validate(filter)?;
        self.store.count(filter).await
    }

    /// How many dead letters fit.
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

    /// Deletes dead letters that fit, for good, in batches. Those that die while this is under way are left alone.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter that makes no sense, and what the store says; what was done until then stays.
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
                    "dead letters were discarded"
                );
                return Ok(done);
            }
        }
    }

    /// Makes waiting messages that fit due at once, in batches: those that failed, that are parked, or whose sink is down.
    /// Scheduled ones are left alone unless they are named by their ids, or `how` says so: after an outage next week's
    /// messages must not leave with the others.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter that makes no sense, and what the store says; what was done until then stays.
    pub async fn hasten(&self, filter: &Filter, how: Hasten, progress: Progress<'_>) -> Result<u64> {
        validate(filter)?;
        let how = meant(filter, how);
        let (mut due, mut after, mut command) = (0, None, self.command());
        loop {
            let step = self
                .store
                .hasten(filter, how, after.as_ref(), AT_ONCE, &mut command)
                .await?;
            due += step.due;
            progress(due);
            after = step.next;
            if after.is_none() {
                break;
            }
        }
        tracing::info!(
            event = "waiting_hastened",
            who = self.who,
            hastened = due,
            reset = how.reset,
            "waiting messages were made due"
        );
        Ok(due)
    }

    /// How many messages [`Operator::hasten`] would change.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter that makes no sense, and what the store says.
    pub async fn hasten_count(&self, filter: &Filter, how: Hasten) -> Result<u64> {
        validate(filter)?;
        self.store.hasten_count(filter, meant(filter, how)).await
    }

    /// Frees the lanes of relays whose lease has run out, and the items of workers that have not renewed them for as long
    /// as `stale_after`.
    ///
    /// # Errors
    /// What the store says.
    pub async fn reap(&self, stale_after: Duration) -> Result<ReapView> {
        Ok(self.store.reap_gone(stale_after, &self.who).await?.into())
    }

    /// Keys whose messages wait behind another, those with the most held messages first.
    ///
    /// # Errors
    /// What the store says.
    pub async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        Ok(self.store.keys(limit).await?.into_iter().map(Into::into).collect())
    }

    /// Lets a key go on past its dead letters. Returns how many blocked it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when nothing blocks it, and what the store says.
    pub async fn release_key(&self, key: &str, leg: Option<&str>) -> Result<u64> {
        let released = self.store.release_key(key, leg, &self.who).await?;
        if released == 0 {
            return Err(
                Error::new(ErrorKind::NotFound, format!("no dead letter blocks the key {key:?}"))
                    .because("it was released or retried already, or its head is still being retried")
                    .next_step("look with `sendoff keys ls`"),
            );
        }
        Ok(released)
    }

    /// All lanes.
    ///
    /// # Errors
    /// What the store says.
    pub async fn lanes(&self) -> Result<Vec<LaneView>> {
        Ok(self.store.lane_views().await?.into_iter().map(Into::into).collect())
    }

    /// Pauses a topic or a sink; returns whether it was not paused before.
    ///
    /// # Errors
    /// What the store says.
    pub async fn pause(&self, what: &Pausable) -> Result<bool> {
        self.store.pause(what, &self.who).await
    }

    /// Ends a pause; returns whether there was one.
    ///
    /// # Errors
    /// What the store says.
    pub async fn resume(&self, what: &Pausable) -> Result<bool> {
        self.store.resume(what, &self.who).await
    }

    /// What is paused.
    ///
    /// # Errors
    /// What the store says.
    pub async fn pauses(&self) -> Result<Vec<PauseView>> {
        Ok(self.store.pauses().await?.into_iter().map(Into::into).collect())
    }

    /// How much is older than the windows.
    ///
    /// # Errors
    /// What the store says.
    pub async fn clean_count(&self, windows: &Windows) -> Result<u64> {
        Ok(self.store.clean_count(windows).await?.old)
    }

    /// Deletes what is older than the windows, in batches, and counts what stays.
    ///
    /// # Errors
    /// What the store says; what was done until then stays.
    pub async fn clean_up(&self, windows: &Windows, progress: Progress<'_>) -> Result<CleanView> {
        let (mut deleted, mut command) = (0, self.command());
        loop {
            let step = self.store.clean_up(windows, AT_ONCE, &mut command).await?;
            deleted += step.deleted;
            progress(deleted);
            if !step.more {
                break;
            }
        }
        let remaining = self.store.clean_count(windows).await?.all;
        Ok(CleanView { deleted, remaining })
    }

    /// What operators did, newest first.
    ///
    /// # Errors
    /// What the store says.
    pub async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        Ok(self.store.audit(limit).await?.into_iter().map(Into::into).collect())
    }
}

/// Whoever names a message by its id means it, scheduled or not.
fn meant(filter: &Filter, how: Hasten) -> Hasten {
    Hasten {
        scheduled: how.scheduled || !filter.ids.is_empty(),
        ..how
    }
}
