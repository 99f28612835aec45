//! Changing things: in batches, telling how far it is.

use sendoff::store::{Filter, Pausable, Status, Windows};
use sendoff::{Error, ErrorKind, Result};

use crate::filter::validate;
use crate::operator::{Operator, of_dead};
use crate::view::{AuditView, CleanView, KeyView, LaneView, PauseView};

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
        let mut done = 0;
        loop {
            let step = self.store.discard_dead(&filter, until, AT_ONCE, &self.who).await?;
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

    /// Makes waiting messages that fit due at once; with `reset`, as if they had never been tried.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a filter that makes no sense, and what the store says.
    pub async fn hasten(&self, filter: &Filter, reset: bool) -> Result<u64> {
        validate(filter)?;
        let most = i32::MAX as usize;
        let hastened = self.store.hasten(filter, reset, most, &self.who).await?;
        tracing::info!(
            event = "waiting_hastened",
            who = self.who,
            hastened,
            reset,
            "waiting messages were made due"
        );
        Ok(hastened)
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

    /// Deletes what is older than the windows, in batches, until nothing of it is left.
    ///
    /// # Errors
    /// What the store says; what was done until then stays.
    pub async fn clean_up(&self, windows: &Windows, progress: Progress<'_>) -> Result<CleanView> {
        let mut deleted = 0;
        loop {
            let step = self.store.clean_up(windows, AT_ONCE, &self.who).await?;
            deleted += step.deleted;
            progress(deleted);
            if step.deleted == 0 || step.remaining == 0 {
                return Ok(CleanView {
                    deleted,
                    remaining: step.remaining,
                });
            }
        }
    }

    /// What operators did, newest first.
    ///
    /// # Errors
    /// What the store says.
    pub async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        Ok(self.store.audit(limit).await?.into_iter().map(Into::into).collect())
    }
}
