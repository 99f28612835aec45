//! Settle: writes the results of deliveries, in one transaction with the check that the relay still holds the lanes.

mod keys;
mod rows;

use std::collections::BTreeMap;

use mysql_async::params;
use sendoff::Result;
use sendoff::store::{Lane, OwnerId, SettlePlan, SettleReport, Settlement};
use serde_json::Value;

use crate::conflict::transact;
use crate::decode::{lane, number, text};
use crate::pool::PooledConnection;
use crate::store::Inner;
use rows::Rows;

const WHAT: &str = "messages could not be settled";

impl Inner {
    pub(crate) async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport> {
        if settlements.is_empty() {
            return Ok(SettleReport::default());
        }
        transact!(self.settle_pool, owner, WHAT, connection => self.settle_behind_fence(&mut connection, owner, settlements).await)
    }

    /// The fence is asked first, and only what is behind the lanes that it lets pass is carried out.
    async fn settle_behind_fence(
        &self,
        connection: &mut PooledConnection,
        owner: OwnerId,
        settlements: &[Settlement],
    ) -> Result<SettleReport> {
        let mut epochs = SettlePlan::epochs(settlements);
        // First of all: who waits for the end of somebody's pause has no lane in flight.
        let paused = if SettlePlan::waits_for_pauses(settlements) {
            let rows = connection.rows(WHAT, self.texts.paused.at(1), ()).await?;
            let names: Result<Vec<String>> = rows.iter().map(|row| text(WHAT, row, 0)).collect();
            Some(names?)
        } else {
            None
        };
        let held = self.held_lanes(connection, WHAT, owner).await?;
        let asked: Vec<Lane> = epochs.keys().copied().collect();
        epochs.retain(|lane, epoch| held.get(lane) == Some(epoch));
        let mut plan = SettlePlan::new(settlements, &epochs, self.config.settings.retention.is_some());
        if let Some(paused) = paused {
            plan.end_pauses(|name| paused.iter().any(|paused| paused == name));
        }
        self.move_rows(connection, &plan).await?;
        let report = self.settle_keys(connection, &plan).await?;
        let lost = asked.into_iter().filter(|lane| !epochs.contains_key(lane)).collect();
        Ok(SettleReport { lost, ..report })
    }

    /// The lanes that the relay holds, with their epochs; none when its lease has run out. None of them can change hands
    /// before the transaction ends.
    pub(crate) async fn held_lanes(
        &self,
        connection: &mut PooledConnection,
        what: &str,
        owner: OwnerId,
    ) -> Result<BTreeMap<Lane, i64>> {
        let (sql, owner) = (&self.texts.check_lanes, owner.to_string());
        for fence in [sql.at(0), sql.at(1)] {
            if connection
                .rows(what, fence, params! { "owner" => &owner })
                .await?
                .is_empty()
            {
                return Ok(BTreeMap::new());
            }
        }
        let lanes = connection.rows(what, sql.at(2), params! { "owner" => owner }).await?;
        lanes
            .iter()
            .map(|row| Ok((lane(what, row, 0)?, number(what, row, 1)?)))
            .collect()
    }

    /// In the order of the plan: what leaves goes first and what fails next. Copies are made before their rows go.
    async fn move_rows(&self, connection: &mut PooledConnection, plan: &SettlePlan<'_>) -> Result<()> {
        let texts = &self.texts;
        let (ready, waiting) = (texts.settle_kept.first(), texts.settle_done_kept.first());
        carry_out(connection, ready, rows::copies(&plan.kept_ready)).await?;
        carry_out(connection, waiting, rows::copies(&plan.kept_waiting)).await?;
        carry_out(
            connection,
            texts.settle_delivered.first(),
            rows::row_refs(&plan.delivered),
        )
        .await?;
        if plan.only_delivered() {
            return Ok(());
        }
        let steps = [
            (&texts.settle_done, rows::row_refs(&plan.done)),
            (&texts.wait_again, rows::waits(&plan.wait_again)),
            (&texts.wait_ready, rows::waits(&plan.wait_ready)),
            (&texts.split_waiting, rows::waits(&plan.split)),
            (&texts.die_ready, rows::deaths(&plan.die_ready)),
            (&texts.die_waiting, rows::deaths(&plan.die_waiting)),
            (&texts.wait_again, rows::waits(&plan.block_again)),
            (&texts.wait_ready, rows::waits(&plan.block_ready)),
            (&texts.split_waiting, rows::waits(&plan.block_split)),
            (&texts.remove_ready, rows::row_refs(&plan.remove_ready)),
            (&texts.remove_waiting, rows::row_refs(&plan.remove_waiting)),
        ];
        for (sql, rows) in steps {
            carry_out(connection, sql.first(), rows).await?;
        }
        Ok(())
    }

    /// Followers are looked at when all rows are where they belong.
    async fn settle_keys(&self, connection: &mut PooledConnection, plan: &SettlePlan<'_>) -> Result<SettleReport> {
        carry_out(connection, self.texts.block_followers.first(), rows::keys(&plan.behind)).await?;
        let gone = rows::keys(&plan.gone);
        let followed = self.follow_on(connection, WHAT, &gone).await?;
        let let_go = self.let_go(connection, rows::held(plan.held())).await?;
        Ok(SettleReport {
            woke: plan.due || followed + let_go > 0,
            freed: self.keys_left(connection, gone).await?,
            ..SettleReport::default()
        })
    }
}

/// Runs a statement for these rows, if there are any.
async fn carry_out(connection: &mut PooledConnection, sql: &str, rows: Rows) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let rows = Value::from(rows).to_string();
    connection.change(WHAT, sql, params! { "rows" => rows }).await
}
