//! Frees lanes and jobs of relays and workers that are gone.

use std::time::Duration;

use sendoff::Result;
use sendoff::store::{Command, Reaped};
use tokio_postgres::types::Type;

use crate::decode::{column, count};
use crate::lease::{END_PAUSES, tell_ended};
use crate::pipeline::Param;
use crate::store::Inner;

impl Inner {
    pub(crate) async fn reap_gone(&self, stale_after: Duration, who: &str) -> Result<Reaped> {
        let what = "lanes and jobs of stopped relays and workers could not be freed";
        let filter = serde_json::json!({"stale_after_seconds": stale_after.as_secs_f64()}).to_string();
        let params: [Param<'_>; 1] = [(&filter, Type::TEXT)];
        let (mut reaped, mut command) = (Reaped::default(), Command::by(who));
        let mut pauses = END_PAUSES.into_iter();
        loop {
            let done = self.act(what, &self.texts.reap, &params, &mut command).await?;
            reaped.lanes += count(column(what, &done.row, 2)?);
            reaped.jobs += count(column(what, &done.row, 3)?);
            // What is left is locked by a settlement that outlived its relay's lease. Ended, it is gone in a moment.
            let ended: Option<i32> = column(what, &done.row, 4)?;
            let (Some(ended), Some(pause)) = (ended, pauses.next()) else {
                return Ok(reaped);
            };
            tell_ended(ended);
            tokio::time::sleep(pause).await;
        }
    }
}
