//! The operations that each database implements.

use std::time::Duration;

use async_trait::async_trait;
use sendoff::Result;

use crate::{Claim, Purge, Settlement, Stamp, Stats};

/// The two tables in one database. What each method does is said at [`crate::DjangoOutbox`].
#[async_trait]
pub(crate) trait Table: Send + Sync {
    async fn check(&self) -> Result<()>;
    async fn claim(&self, limit: u32, stale: Duration) -> Result<Claim>;
    async fn settle(&self, stamp: &Stamp, settlement: &Settlement) -> Result<()>;
    async fn retry_dead(&self, ids: Option<&[i64]>, limit: u32) -> Result<u64>;
    /// Deletes some of these dead letters, and tells the names of their tasks: none once there are no more.
    async fn purge(&self, which: &Purge) -> Result<Vec<String>>;
    async fn purgeable(&self, which: &Purge) -> Result<Vec<(String, u64)>>;
    async fn failing(&self, most: u32) -> Result<Vec<(String, u64)>>;
    async fn stats(&self, stale: Duration) -> Result<Stats>;
}
