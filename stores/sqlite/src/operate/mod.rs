//! Room: operate. What operators, and relays in passing, see and do.

mod act;
mod audit;
mod filter;
mod keys;
mod lanes;
mod look;
mod pause;
mod stored;

use std::time::SystemTime;

use async_trait::async_trait;
use sendoff::store::{
    AuditView, Cleaned, Filter, KeyView, LaneView, Listing, OperateStore, Pausable, PauseView, Stored, Summary, Windows,
};
use sendoff::{Result, Uuid};

pub(crate) use self::audit::write_audit;
pub(crate) use self::filter::spellings;
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

    async fn retry_dead(&self, filter: &Filter, until: Option<SystemTime>, limit: usize, who: &str) -> Result<u64> {
        self.0.retry_dead(filter, until, limit, who).await
    }

    async fn count(&self, filter: &Filter) -> Result<u64> {
        self.0.count(filter).await
    }

    async fn hasten(&self, filter: &Filter, reset: bool, limit: usize, who: &str) -> Result<u64> {
        self.0.hasten(filter, reset, limit, who).await
    }

    async fn discard_dead(&self, filter: &Filter, until: Option<SystemTime>, limit: usize, who: &str) -> Result<u64> {
        self.0.discard_dead(filter, until, limit, who).await
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

    async fn clean_up(&self, windows: &Windows, limit: usize, who: &str) -> Result<Cleaned> {
        self.0.clean_up(windows, limit, who).await
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        self.0.audit(limit).await
    }
}
