//! Settle: writes the results of deliveries, after the check that the relay still holds the lanes. [`SettlePlan`]
//! decides what happens to each row; this module has the statements.

mod blocked;
mod delivered;
mod key;
mod run;
mod step;

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction};
use sendoff::Result;
use sendoff::store::{Lane, OwnerId, SettlePlan, SettleReport, Settlement};

pub(crate) use self::blocked::{blocked_keys, release_orphans};
use self::delivered::Delivered;
pub(crate) use self::key::{deliveries_behind, follow_on};
use crate::lease::{held, write};
use crate::operate::paused;
use crate::sql::Sql;
use crate::store::Inner;

/// Carries out settlements of lanes that the owner holds, in one transaction.
///
/// The fence needs no more than that transaction: whoever takes a lane away has to write, and there is one writer. So
/// what is checked at its beginning holds until its end.
pub(crate) async fn settle(store: &Inner, owner: OwnerId, settlements: &[Settlement]) -> Result<SettleReport> {
    if settlements.is_empty() {
        return Ok(SettleReport::default());
    }
    let (sql, settlements) = (store.sql.clone(), settlements.to_vec());
    let keeps = store.config.settings.retention.is_some();
    let work = move |connection: &mut Connection| {
        // Before the transaction: everybody else waits for the write lock.
        let epochs = SettlePlan::epochs(&settlements);
        let steps = Steps::of(&settlements, &epochs, keeps);
        let tx = write(connection)?;
        let held = held(&tx, &sql, &owner.to_string())?;
        let is_held = |(lane, epoch): &(Lane, i64)| held.lanes.get(lane) == Some(epoch);
        let (held_lanes, lost): (BTreeMap<Lane, i64>, BTreeMap<Lane, i64>) = epochs.into_iter().partition(is_held);
        let mut steps = if lost.is_empty() {
            steps
        } else {
            Steps::of(&settlements, &held_lanes, keeps)
        };
        if SettlePlan::waits_for_pauses(&settlements) {
            let paused = paused(&tx, &sql)?;
            let lasts = |name: &str| paused.iter().any(|(kind, paused)| kind == "topic" && paused == name);
            steps.plan.end_pauses(lasts);
        }
        let settling = Settling {
            tx: &tx,
            sql: &sql,
            now: held.now,
        };
        let report = settling.carry_out(&steps, lost.into_keys().collect())?;
        tx.commit()?;
        Ok(report)
    };
    store.settle.call("messages could not be settled", work).await
}

/// A transaction with what every step of it needs.
struct Settling<'a> {
    tx: &'a Transaction<'a>,
    sql: &'a Sql,
    now: i64,
}

/// What is to be written.
struct Steps<'a> {
    plan: SettlePlan<'a>,
    delivered: Delivered<'a>,
}

impl<'a> Steps<'a> {
    fn of(settlements: &'a [Settlement], lanes: &BTreeMap<Lane, i64>, keeps: bool) -> Self {
        let plan = SettlePlan::new(settlements, lanes, keeps);
        Self {
            delivered: Delivered::of(&plan.delivered),
            plan,
        }
    }
}

impl Settling<'_> {
    fn carry_out(&self, steps: &Steps<'_>, lost: Vec<Lane>) -> rusqlite::Result<SettleReport> {
        self.keep(&steps.plan)?;
        self.delivered(&steps.delivered)?;
        self.steps(&steps.plan)?;
        let (freed, woke) = self.reconcile(&steps.plan)?;
        Ok(SettleReport {
            lost,
            freed,
            woke: woke || steps.plan.due,
        })
    }

    /// Runs the statement with these values and tells how many rows it changed.
    fn run(&self, text: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.tx.prepare_cached(text)?.execute(values)
    }
}
