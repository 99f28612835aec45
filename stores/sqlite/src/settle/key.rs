//! The queue of a key: who may go on, and who has to wait again.
//!
//! Of the rows of one lane, key and leg that block (retry, held, down), those with a due time come first in the order
//! of `seq`. Settling keeps it so: once at the end for each key that was touched, whatever the number of its rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Transaction, params};
use sendoff::store::{BlockedKey, Lane, RetryState, Room, Settlement, Verdict};

use super::Settling;
use crate::sql::Sql;

/// The keys that a transaction has touched.
#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<BlockedKey, Touch>);

/// What happened to a key at a leg.
#[derive(Debug, Default)]
struct Touch {
    /// A row of the waiting table was settled.
    waited: bool,
    /// A row went out of the way of those behind it.
    gone: bool,
    /// The first row that has to wait, or died and blocks.
    waits_from: Option<i64>,
    /// Rows that are held.
    held: Vec<i64>,
}

impl Keys {
    /// Takes note of a verdict.
    pub(super) fn settled(&mut self, settlement: &Settlement, leg: &str, verdict: &Verdict) {
        let Some(key) = &settlement.key else { return };
        let seq = settlement.place.seq;
        let touch = self.touch(settlement.place.lane, key, leg);
        touch.waited |= settlement.place.room == Room::Waiting;
        let waits = match verdict {
            Verdict::Retry { state, .. } => match state {
                RetryState::Retry | RetryState::Down => true,
                RetryState::Parked => false,
            },
            Verdict::Hold => {
                touch.held.push(seq);
                true
            }
            Verdict::Dead { blocks, .. } => *blocks,
            Verdict::Delivered => false,
        };
        if waits {
            touch.waits_from = Some(touch.waits_from.map_or(seq, |first| first.min(seq)));
        } else {
            touch.gone = true;
        }
    }

    /// Takes note that a row of the waiting table is gone.
    pub(super) fn gone(&mut self, lane: Lane, key: &Arc<str>, leg: &str) {
        let touch = self.touch(lane, key, leg);
        touch.waited = true;
        touch.gone = true;
    }

    /// Makes the queues right again. Returns the keys of which nothing waits any more, and whether rows became due.
    pub(super) fn reconcile(self, settling: &Settling<'_>) -> rusqlite::Result<(Vec<BlockedKey>, bool)> {
        let (mut freed, mut woke) = (Vec::new(), false);
        for (key, mut touch) in self.0 {
            if let Some(seq) = touch.waits_from {
                settling.hold_back(&key, seq)?;
            }
            // Only the waiting table has rows behind others, and a ready row was not in it.
            if touch.gone && touch.waited {
                woke |= follow_on(settling.tx, settling.sql, &key)? > 0;
            }
            touch.held.sort_unstable();
            for seq in touch.held {
                woke |= settling.let_go(&key, seq)? > 0;
            }
            if touch.waited && !settling.is_left(&key)? {
                freed.push(key);
            }
        }
        Ok((freed, woke))
    }

    fn touch(&mut self, lane: Lane, key: &Arc<str>, leg: &str) -> &mut Touch {
        let key = BlockedKey {
            lane,
            key: key.clone(),
            leg: leg.into(),
        };
        self.0.entry(key).or_default()
    }
}

/// The next held rows of the key become due.
pub(crate) fn follow_on(tx: &Transaction<'_>, sql: &Sql, key: &BlockedKey) -> rusqlite::Result<usize> {
    let mut statement = tx.prepare_cached(sql.follow_on.first())?;
    statement.execute(params![key.lane, &*key.key, &*key.leg])
}

/// The legs that a row stood in the way of: its own, or for a row that was not routed yet every leg that has held rows.
pub(crate) fn legs_behind(
    tx: &Transaction<'_>,
    sql: &Sql,
    lane: Lane,
    key: &str,
    leg: &str,
) -> rusqlite::Result<Vec<String>> {
    if !leg.is_empty() {
        return Ok(vec![leg.to_owned()]);
    }
    let mut legs = tx.prepare_cached(sql.follow_on.at(1))?;
    legs.query_map(params![lane, key], |row| row.get(0))?.collect()
}

impl Settling<'_> {
    /// The rows behind this one are held again.
    fn hold_back(&self, key: &BlockedKey, seq: i64) -> rusqlite::Result<usize> {
        self.run(self.sql.hold_back.first(), params![key.lane, &*key.key, &*key.leg, seq])
    }

    /// A held row becomes due if nothing holds it.
    fn let_go(&self, key: &BlockedKey, seq: i64) -> rusqlite::Result<usize> {
        self.run(self.sql.wait_again.at(1), params![key.lane, seq, &*key.leg, self.now])
    }

    fn is_left(&self, key: &BlockedKey) -> rusqlite::Result<bool> {
        let mut statement = self.tx.prepare_cached(self.sql.key_left.first())?;
        statement.query_row(params![key.lane, &*key.key, &*key.leg], |row| row.get(0))
    }
}
