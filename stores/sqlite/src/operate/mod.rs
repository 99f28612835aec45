//! Operate: what operators see and do, and counts for the relay.

mod act;
mod audit;
mod filter;
mod keys;
mod lanes;
mod list;
mod list_texts;
mod look;
mod overview;
mod pause;
mod reap;
mod retry_waiting;

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sendoff::store::{
    AuditView, CleanCount, Cleaned, Command, Direction, EndedAt, Filter, KeyView, LaneView, ListTable, Looked,
    LookedEnded, OperateStore, Overview, Pausable, PauseView, Reaped, Retention, RetriedBatch, RetryOptions, RowRef,
    Stored, Summary,
};
use sendoff::{Result, Uuid};

pub(crate) use self::act::Batch;
pub(crate) use self::filter::{as_asked, spellings};
pub(crate) use self::list_texts::list_texts;
pub(crate) use self::pause::paused;
use crate::SqliteStore;

#[async_trait]
impl OperateStore for SqliteStore {
    async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>> {
        self.0.next_number(table, from, direction).await
    }

    async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked> {
        self.0.look(table, filter, numbers, direction, limit).await
    }

    async fn look_ended(
        &self,
        table: ListTable,
        filter: &Filter,
        from: Option<EndedAt>,
        direction: Direction,
        rows: usize,
        limit: usize,
    ) -> Result<LookedEnded> {
        self.0.look_ended(table, filter, from, direction, rows, limit).await
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

    async fn retry_waiting(
        &self,
        filter: &Filter,
        how: RetryOptions,
        after: Option<&RowRef>,
        limit: usize,
        command: &mut Command,
    ) -> Result<RetriedBatch> {
        self.0.retry_waiting(filter, how, after, limit, command).await
    }

    async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        self.0.retry_waiting_count(filter, how).await
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

    async fn release_key(&self, key: &str, sink: Option<&str>, who: &str) -> Result<u64> {
        self.0.release_key(key, sink, who).await
    }

    async fn published_routes(&self) -> Result<Vec<String>> {
        self.0.published_routes().await
    }

    async fn lane_views(&self) -> Result<Vec<LaneView>> {
        self.0.lane_views().await
    }

    async fn overview(&self) -> Result<Overview> {
        self.0.overview().await
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

    async fn clean_count(&self, retention: &Retention) -> Result<CleanCount> {
        self.0.clean_count(retention).await
    }

    async fn clean_up(&self, retention: &Retention, limit: usize, command: &mut Command) -> Result<Cleaned> {
        self.0.clean_up(retention, limit, command).await
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        self.0.audit(limit).await
    }
}
