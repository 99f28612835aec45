//! The queue of a key: which of its rows are due, and which have to wait again.
//!
//! Of the rows of one lane, key and delivery that block (retry, held, down), those with a due time come first in the order
//! of `seq`. Settling keeps it so: once at the end for each key that was touched, whatever the number of its rows.

use rusqlite::{Transaction, params};
use sendoff::store::{BlockedKey, Lane, SettlePlan, WaitStep};

use super::Settling;
use crate::row_id::Id;
use crate::sql::Sql;

/// The next held rows of the key become due.
pub(crate) fn follow_on(tx: &Transaction<'_>, sql: &Sql, lane: Lane, key: &str, sink: &str) -> rusqlite::Result<usize> {
    let mut statement = tx.prepare_cached(sql.follow_on.first())?;
    statement.execute(params![lane, key, sink])
}

/// The deliveries that a row stood in the way of: its own, or for a row that was not routed yet every delivery that has held rows.
pub(crate) fn deliveries_behind(
    tx: &Transaction<'_>,
    sql: &Sql,
    lane: Lane,
    key: &str,
    sink: &str,
) -> rusqlite::Result<Vec<String>> {
    if !sink.is_empty() {
        return Ok(vec![sink.to_owned()]);
    }
    let mut deliveries = tx.prepare_cached(sql.follow_on.at(1))?;
    deliveries.query_map(params![lane, key], |row| row.get(0))?.collect()
}

impl Settling<'_> {
    /// Makes the queues right again. Returns the keys of which nothing waits any more, and whether rows became due.
    pub(super) fn reconcile(&self, plan: &SettlePlan<'_>) -> rusqlite::Result<(Vec<BlockedKey>, bool)> {
        let (mut freed, mut woke) = (Vec::new(), false);
        for ((lane, key, sink), seq) in &plan.behind {
            self.run(self.sql.block_followers.first(), params![lane, key, sink, seq])?;
        }
        for (lane, key, sink) in plan.gone.keys() {
            for sink in deliveries_behind(self.tx, self.sql, *lane, key, sink)? {
                woke |= follow_on(self.tx, self.sql, *lane, key, &sink)? > 0;
            }
        }
        for held in plan.held() {
            woke |= self.let_go(held)? > 0;
        }
        for (lane, key, sink) in plan.gone.keys() {
            if !self.is_left(*lane, key, sink)? {
                freed.push(BlockedKey {
                    lane: *lane,
                    key: (*key).into(),
                    sink: (*sink).into(),
                });
            }
        }
        Ok((freed, woke))
    }

    /// A held row becomes due if nothing holds it.
    fn let_go(&self, held: &WaitStep<'_>) -> rusqlite::Result<usize> {
        let row_ref = held.row_ref;
        let values = params![row_ref.lane, row_ref.seq, held.sink, Id(&row_ref.id), self.now];
        self.run(self.sql.wait_again.at(1), values)
    }

    fn is_left(&self, lane: Lane, key: &str, sink: &str) -> rusqlite::Result<bool> {
        let mut statement = self.tx.prepare_cached(self.sql.key_left.first())?;
        statement.query_row(params![lane, key, sink], |row| row.get(0))
    }
}
