//! Room: settle. What became of messages, in one transaction with the check that the relay still holds their lanes.

mod keys;
mod rows;

use std::collections::BTreeMap;

use mysql_async::params;
use sendoff::Result;
use sendoff::store::{Lane, OwnerId, SettlePlan, SettleReport, Settlement};
use serde_json::Value;

use crate::conflict::transact;
use crate::decode::{lane, number};
use crate::pool::Lent;
use crate::store::Inner;
use rows::Rows;

const WHAT: &str = "messages could not be settled";

impl Inner {
    pub(crate) async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport> {
        if settlements.is_empty() {
            return Ok(SettleReport::default());
        }
        transact!(self.settle_pool, owner, WHAT, lent => self.settle_behind_fence(&mut lent, owner, settlements).await)
    }

    /// The fence is asked first, and only what is behind the lanes that it lets pass is carried out.
    async fn settle_behind_fence(
        &self,
        lent: &mut Lent,
        owner: OwnerId,
        settlements: &[Settlement],
    ) -> Result<SettleReport> {
        let mut epochs = SettlePlan::epochs(settlements);
        let held = self.held_lanes(lent, WHAT, owner).await?;
        let asked: Vec<Lane> = epochs.keys().copied().collect();
        epochs.retain(|lane, epoch| held.get(lane) == Some(epoch));
        let plan = SettlePlan::new(settlements, &epochs);
        self.move_rows(lent, &plan).await?;
        let report = self.settle_keys(lent, &plan).await?;
        let lost = asked.into_iter().filter(|lane| !epochs.contains_key(lane)).collect();
        Ok(SettleReport { lost, ..report })
    }

    /// The lanes that the relay holds, with their epochs; none when its lease has run out. None of them can change hands
    /// before the transaction ends.
    pub(crate) async fn held_lanes(&self, lent: &mut Lent, what: &str, owner: OwnerId) -> Result<BTreeMap<Lane, i64>> {
        let (sql, owner) = (&self.texts.check_lanes, owner.to_string());
        for fence in [sql.at(0), sql.at(1)] {
            if lent.rows(what, fence, params! { "owner" => &owner }).await?.is_empty() {
                return Ok(BTreeMap::new());
            }
        }
        let lanes = lent.rows(what, sql.at(2), params! { "owner" => owner }).await?;
        lanes
            .iter()
            .map(|row| Ok((lane(what, row, 0)?, number(what, row, 1)?)))
            .collect()
    }

    /// In the order of the plan: what leaves goes first and what fails next. Copies are made before their rows go.
    async fn move_rows(&self, lent: &mut Lent, plan: &SettlePlan<'_>) -> Result<()> {
        let texts = &self.texts;
        if self.config.retention.is_some() {
            let (ready, waiting) = (texts.settle_kept.first(), texts.settle_done_kept.first());
            carry_out(lent, ready, rows::whole_copies(&plan.delivered)).await?;
            carry_out(lent, ready, rows::copies(&plan.confirmed)).await?;
            carry_out(lent, waiting, rows::whole_copies(&plan.done)).await?;
            carry_out(lent, waiting, rows::copies(&plan.confirmed_waiting)).await?;
        }
        carry_out(lent, texts.settle_delivered.first(), rows::places(&plan.delivered)).await?;
        if plan.only_delivered() {
            return Ok(());
        }
        let steps = [
            (&texts.settle_done, rows::places(&plan.done)),
            (&texts.wait_again, rows::waits(&plan.wait_again)),
            (&texts.wait_ready, rows::waits(&plan.wait_ready)),
            (&texts.split_waiting, rows::waits(&plan.split)),
            (&texts.die_ready, rows::deaths(&plan.die_ready)),
            (&texts.die_waiting, rows::deaths(&plan.die_waiting)),
            (&texts.wait_again, rows::waits(&plan.hold_again)),
            (&texts.wait_ready, rows::waits(&plan.hold_ready)),
            (&texts.split_waiting, rows::waits(&plan.hold_split)),
            (&texts.remove_ready, rows::places(&plan.remove_ready)),
            (&texts.remove_waiting, rows::places(&plan.remove_waiting)),
        ];
        for (sql, rows) in steps {
            carry_out(lent, sql.first(), rows).await?;
        }
        Ok(())
    }

    /// Followers are looked at when all rows are where they belong.
    async fn settle_keys(&self, lent: &mut Lent, plan: &SettlePlan<'_>) -> Result<SettleReport> {
        carry_out(lent, self.texts.hold_back.first(), rows::keys(&plan.behind)).await?;
        let gone = rows::keys(&plan.gone);
        let followed = self.follow_on(lent, WHAT, &gone).await?;
        let let_go = self.let_go(lent, rows::held(plan.held())).await?;
        Ok(SettleReport {
            woke: plan.due || followed + let_go > 0,
            freed: self.keys_left(lent, gone).await?,
            ..SettleReport::default()
        })
    }
}

/// Runs a statement for these rows, if there are any.
async fn carry_out(lent: &mut Lent, sql: &str, rows: Rows) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let rows = Value::from(rows).to_string();
    lent.change(WHAT, sql, params! { "rows" => rows }).await
}
