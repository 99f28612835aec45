//! What every database has to do.

use std::time::Duration;

use async_trait::async_trait;
use sendoff::Result;

use crate::{Claim, Settlement, Stamp, Stats};

/// The two tables in one database. What each method does is said at [`crate::DjangoOutbox`].
#[async_trait]
pub(crate) trait Table: Send + Sync {
    async fn check(&self) -> Result<()>;
    async fn claim(&self, limit: u32, stale: Duration) -> Result<Claim>;
    async fn settle(&self, stamp: &Stamp, settlement: &Settlement) -> Result<()>;
    async fn replay(&self, ids: Option<&[i64]>, limit: u32) -> Result<u64>;
    /// Deletes some dead letters that died longer ago; 0 once there are none.
    async fn purge(&self, older_than: Duration) -> Result<u64>;
    async fn stats(&self, stale: Duration) -> Result<Stats>;
}
