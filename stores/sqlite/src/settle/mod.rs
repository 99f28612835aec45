//! Room: settle. What became of messages, written down behind the fence.

mod blocked;
mod key;
mod plan;
mod ready;
mod run;
mod waiting;

use rusqlite::{Connection, Transaction, params};
use sendoff::Result;
use sendoff::store::{Lane, OwnerId, Room, SettleReport, Settlement};

pub(crate) use self::blocked::{blocked_keys, release_orphans};
use self::key::Keys;
pub(crate) use self::key::{follow_on, legs_behind};
use self::plan::Plan;
use self::run::runs;
use crate::lease::{held, write};
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
    let plan = Plan::new(settlements);
    let sql = store.sql.clone();
    let keeps = store.config.retention.is_some();
    let work = move |connection: &mut Connection| {
        let tx = write(connection)?;
        let report = carry_out(&tx, &sql, owner, plan, keeps)?;
        tx.commit()?;
        Ok(report)
    };
    store.settle.call("messages could not be settled", work).await
}

/// A transaction with what every step of it needs.
pub(crate) struct Settling<'a> {
    pub(crate) tx: &'a Transaction<'a>,
    pub(crate) sql: &'a Sql,
    pub(crate) now: i64,
    /// Whether delivered messages are kept.
    pub(crate) keeps: bool,
}

fn carry_out(
    tx: &Transaction<'_>,
    sql: &Sql,
    owner: OwnerId,
    mut plan: Plan,
    keeps: bool,
) -> rusqlite::Result<SettleReport> {
    let held = held(tx, sql, &owner.to_string())?;
    let lost = plan.drop_lost(&held);
    let settling = Settling {
        tx,
        sql,
        now: held.now,
        keeps,
    };
    let mut keys = Keys::default();
    settling.delivered(&plan.delivered)?;
    for settlement in &plan.rows {
        match settlement.place.room {
            Room::Ready => settling.settle_ready(settlement, &mut keys)?,
            Room::Waiting => settling.settle_waiting(settlement, &mut keys)?,
        }
    }
    let (freed, woke) = keys.reconcile(&settling)?;
    Ok(SettleReport { lost, freed, woke })
}

impl Settling<'_> {
    /// Runs the statement with these values and tells how many rows it changed.
    pub(crate) fn run(&self, text: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.tx.prepare_cached(text)?.execute(values)
    }

    /// Ready rows that every sink confirmed: the path that nearly all messages take. They lie near each other, so one walk
    /// over the table deletes many.
    fn delivered(&self, rows: &[(Lane, i64)]) -> rusqlite::Result<()> {
        if self.keeps {
            let mut keep = self.tx.prepare_cached(self.sql.settle_kept.first())?;
            for (lane, seq) in rows {
                keep.execute(params![seq, lane, ""])?;
            }
        }
        let mut delete = self.tx.prepare_cached(self.sql.settle_delivered.first())?;
        for run in runs(rows.iter().map(|(_, seq)| *seq).collect()) {
            delete.execute(params![run.first, run.last, run.mask])?;
        }
        Ok(())
    }
}
