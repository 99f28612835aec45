//! Room: operate. What operators, and relays in passing, see and do.

mod act;
mod audit;
mod filter;
mod hasten;
mod keys;
mod lanes;
mod look;
mod pause;
mod reap;
mod stored;

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sendoff::store::{
    AuditView, CleanCount, Cleaned, Command, Filter, Hasten, Hastened, KeyView, LaneView, Listing, OperateStore,
    Pausable, PauseView, Place, Reaped, Stored, Summary, Windows,
};
use sendoff::{Result, Uuid};

pub(crate) use self::act::Batch;
pub(crate) use self::filter::{as_asked, spellings};
pub(crate) use self::stored::stored;
use crate::SqliteStore;

#[async_trait]
impl OperateStore for SqliteStore {
    async fn list(&self, filter: &Filter, limit: usize, offset: usize) -> Result<Listing> {
        self.0.list(filter, limit, offset).await
    }

    async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        self.0.find(id).await
    }

    async fn summary(&self) -> Result<Summary> {
        self.0.summary().await
    }

    async fn now(&self) -> Result<SystemTime> {
        self.0.now().await
    }

    async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        self.0.retry_dead(filter, until, limit, command).await
    }

    async fn count(&self, filter: &Filter) -> Result<u64> {
        self.0.count(filter).await
    }

    async fn hasten(
        &self,
        filter: &Filter,
        how: Hasten,
        after: Option<&Place>,
        limit: usize,
        command: &mut Command,
    ) -> Result<Hastened> {
        self.0.hasten(filter, how, after, limit, command).await
    }

    async fn hasten_count(&self, filter: &Filter, how: Hasten) -> Result<u64> {
        self.0.hasten_count(filter, how).await
    }

    async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        self.0.discard_dead(filter, until, limit, command).await
    }

    async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        self.0.keys(limit).await
    }

    async fn release_key(&self, key: &str, leg: Option<&str>, who: &str) -> Result<u64> {
        self.0.release_key(key, leg, who).await
    }

    async fn lane_views(&self) -> Result<Vec<LaneView>> {
        self.0.lane_views().await
    }

    async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        self.0.pause(what, who).await
    }

    async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        self.0.resume(what, who).await
    }

    async fn pauses(&self) -> Result<Vec<PauseView>> {
        self.0.pauses().await
    }

    async fn reap_gone(&self, stale_after: Duration, who: &str) -> Result<Reaped> {
        self.0.reap_gone(stale_after, who).await
    }

    async fn clean_count(&self, windows: &Windows) -> Result<CleanCount> {
        self.0.clean_count(windows).await
    }

    async fn clean_up(&self, windows: &Windows, limit: usize, command: &mut Command) -> Result<Cleaned> {
        self.0.clean_up(windows, limit, command).await
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        self.0.audit(limit).await
    }
}
