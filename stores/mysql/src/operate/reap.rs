//! Frees lanes and jobs of relays and workers that are gone.

use std::time::Duration;

use mysql_async::params;
use sendoff::Result;
use sendoff::store::{Action, Reaped};
use serde_json::json;

use super::change::Act;
use crate::conflict::transact;
use crate::decode::micros;
use crate::pool::PooledConnection;
use crate::store::Inner;
use crate::work::change_found;

impl Inner {
    pub(crate) async fn reap_gone(&self, stale_after: Duration, who: &str) -> Result<Reaped> {
        let act = Act {
            what: "lanes and jobs of stopped relays and workers could not be freed",
            action: Action::Reap,
            filter: json!({"stale_after_seconds": stale_after.as_secs_f64()}).to_string(),
            who,
        };
        // By a transaction that the server ends if it has to: it locks relays and lanes.
        let (mut lanes, row) =
            transact!(self.lease_pool, act.what, connection => self.reap_lanes(&mut connection, &act).await)?;
        let stuck = self.end_stuck(act.what).await?;
        lanes += stuck;
        let jobs = transact!(self.operate_pool, act.what, connection => {
            self.reap_jobs(&mut connection, &act, stale_after, row, stuck).await
        })?;
        Ok(Reaped { lanes, jobs })
    }

    async fn reap_lanes(&self, connection: &mut PooledConnection, act: &Act<'_>) -> Result<(u64, i64)> {
        let lanes = self.strike_off(connection, act.what).await?;
        let row = self.write_batch(connection, act, None, lanes).await?;
        Ok((lanes, row))
    }

    /// Adds to the row of the audit what was freed since it was written.
    async fn reap_jobs(
        &self,
        connection: &mut PooledConnection,
        act: &Act<'_>,
        stale_after: Duration,
        row: i64,
        lanes: u64,
    ) -> Result<u64> {
        let age = params! { "age" => micros(stale_after) };
        let jobs = change_found(connection, act.what, &self.texts.reap_jobs, age).await?;
        self.write_batch(connection, act, Some(row), lanes + jobs).await?;
        Ok(jobs)
    }
}
