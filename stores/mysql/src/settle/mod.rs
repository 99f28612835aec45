//! Room: settle. What became of messages, in one transaction with the check that the relay still holds their lanes.

mod keys;
mod sort;

use std::collections::BTreeMap;

use mysql_async::params;
use sendoff::Result;
use sendoff::store::{Lane, OwnerId, SettleReport, Settlement};
use serde_json::Value;

use crate::conflict::transact;
use crate::decode::{lane, number};
use crate::pool::Lent;
use crate::store::Inner;
use sort::{Rows, Sorted, key_rows};

const WHAT: &str = "messages could not be settled";

impl Inner {
    pub(crate) async fn settle(&self, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport> {
        if settlements.is_empty() {
            return Ok(SettleReport::default());
        }
        // Should a lane be there with two epochs, what was read under the older one is void.
        let mut epochs: BTreeMap<Lane, i64> = BTreeMap::new();
        for settlement in settlements {
            let epoch = epochs.entry(settlement.place.lane).or_insert(settlement.epoch);
            *epoch = settlement.epoch.max(*epoch);
        }
        transact!(self.settle_pool, WHAT, lent => self.settle_behind_fence(&mut lent, owner, settlements, &epochs).await)
    }

    /// The fence is asked first, and only what is behind the lanes that it lets pass is carried out.
    async fn settle_behind_fence(
        &self,
        lent: &mut Lent,
        owner: OwnerId,
        settlements: &[Settlement],
        asked: &BTreeMap<Lane, i64>,
    ) -> Result<SettleReport> {
        let held = self.held_lanes(lent, WHAT, owner).await?;
        let is_held = |lane: &Lane, epoch: &i64| held.get(lane) == Some(epoch);
        let lost = asked.iter().filter(|(lane, epoch)| !is_held(lane, epoch));
        let lost = lost.map(|(lane, _)| *lane).collect();
        let mut epochs = asked.clone();
        epochs.retain(|lane, epoch| is_held(lane, epoch));
        let sorted = Sorted::new(settlements, &epochs);
        self.move_rows(lent, &sorted).await?;
        let report = self.settle_keys(lent, sorted).await?;
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

    /// The order matters: what leaves goes first and what fails next.
    async fn move_rows(&self, lent: &mut Lent, sorted: &Sorted<'_>) -> Result<()> {
        let texts = &self.texts;
        let keeps = self.config.retention.is_some();
        let none = Rows::new();
        let if_kept = |rows| if keeps { rows } else { &none };
        let steps = [
            (texts.settle_kept.first(), if_kept(&sorted.delivered)),
            (texts.settle_kept.first(), if_kept(&sorted.confirmed)),
            (texts.settle_done_kept.first(), if_kept(&sorted.done)),
            (texts.settle_done_kept.first(), if_kept(&sorted.confirmed_waiting)),
            (texts.settle_delivered.first(), &sorted.delivered),
            (texts.settle_done.first(), &sorted.done),
            (texts.wait_again.first(), &sorted.again),
            (texts.wait_ready.first(), &sorted.ready),
            (texts.split_waiting.first(), &sorted.split),
            (texts.die_ready.first(), &sorted.dead_ready),
            (texts.die_waiting.first(), &sorted.dead_waiting),
            (texts.wait_again.first(), &sorted.again_held),
            (texts.wait_ready.first(), &sorted.ready_held),
            (texts.split_waiting.first(), &sorted.split_held),
            (texts.remove_ready.first(), &sorted.moved_ready),
            (texts.remove_waiting.first(), &sorted.moved_waiting),
        ];
        for (sql, rows) in steps {
            carry_out(lent, sql, rows).await?;
        }
        Ok(())
    }

    /// Followers are looked at when all rows are where they belong.
    async fn settle_keys(&self, lent: &mut Lent, sorted: Sorted<'_>) -> Result<SettleReport> {
        let mut report = SettleReport {
            woke: sorted.due,
            ..SettleReport::default()
        };
        carry_out(lent, self.texts.hold_back.first(), &key_rows(&sorted.behind)).await?;
        let gone = key_rows(&sorted.gone);
        report.woke |= self.follow_on(lent, WHAT, &gone).await? > 0;
        report.woke |= self.let_go(lent, sorted.held).await? > 0;
        report.freed = self.keys_left(lent, gone).await?;
        Ok(report)
    }
}

/// Runs a statement for these rows, if there are any.
async fn carry_out(lent: &mut Lent, sql: &str, rows: &Rows) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let rows = Value::from(rows.as_slice()).to_string();
    lent.change(WHAT, sql, params! { "rows" => rows }).await
}
