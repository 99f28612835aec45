//! Room: settle. What became of messages, in one transaction with the check that the relay still holds their lanes.

mod keys;
mod rows;
mod sort;

use std::collections::BTreeMap;

use sendoff::Result;
use sendoff::store::{BlockedKey, Lane, OwnerId, SettleReport, Settlement};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::decode::{column, smallints};
use crate::pipeline::{Param, Statement};
use crate::pool::Lent;
use crate::store::Inner;
use keys::KeyColumns;
use rows::{Deaths, Places, Waits};
use sort::Sorted;

const WHAT: &str = "messages could not be settled";

/// A lost delivery only sends the message twice, so its commit is not waited for. Rows are found one by one by their
/// primary key, however large or small the planner takes the tables to be.
pub(crate) const SETTINGS: &str = "SET LOCAL synchronous_commit = off; SET LOCAL enable_seqscan = off; \
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off";

/// A crash of the server that forgets that a message has to wait would let its followers overtake it, because the relay
/// goes by what it was told: such a commit is waited for, as the server is configured.
const DURABLE: &str = "SET LOCAL synchronous_commit TO DEFAULT";

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
        let sorted = Sorted::new(settlements, &epochs);
        let lent = self.settle_pool.lend().await?;
        let report = if sorted.only_delivered() && self.config.retention.is_none() {
            self.settle_at_once(&lent, owner, &sorted).await?
        } else {
            self.settle_in_steps(&lent, owner, settlements, epochs).await?
        };
        lent.give_back();
        Ok(report)
    }

    /// The usual case: one round trip, fence included.
    async fn settle_at_once(&self, lent: &Lent, owner: OwnerId, sorted: &Sorted<'_>) -> Result<SettleReport> {
        let params = sorted.delivered.params(&owner.0);
        let rows = lent.run(WHAT, &self.texts.settle_delivered, &params).await?;
        Ok(SettleReport {
            lost: lanes_in(&rows)?,
            ..SettleReport::default()
        })
    }

    /// The fence is asked first, and only what is behind the lanes that it lets pass is sent on.
    async fn settle_in_steps(
        &self,
        lent: &Lent,
        owner: OwnerId,
        settlements: &[Settlement],
        mut epochs: BTreeMap<Lane, i64>,
    ) -> Result<SettleReport> {
        let lanes = smallints(&epochs.keys().copied().collect::<Vec<_>>());
        let numbers: Vec<i64> = epochs.values().copied().collect();
        let fence = Statement {
            sql: &self.texts.check_lanes,
            params: vec![
                (&owner.0, Type::UUID),
                (&lanes, Type::INT2_ARRAY),
                (&numbers, Type::INT8_ARRAY),
            ],
        };
        let mut found = lent.begin(WHAT, &[fence]).await?;
        let held = lanes_in(&found.pop().unwrap_or_default())?;
        let lost = epochs.keys().copied().filter(|lane| !held.contains(lane)).collect();
        epochs.retain(|lane, _| held.contains(lane));
        let report = self.carry_out(lent, owner, &Sorted::new(settlements, &epochs)).await?;
        Ok(SettleReport { lost, ..report })
    }

    /// Everything after the fence, in one go.
    async fn carry_out(&self, lent: &Lent, owner: OwnerId, sorted: &Sorted<'_>) -> Result<SettleReport> {
        let delivered = sorted.delivered.places();
        let (gone, behind) = (sorted.gone.columns(), sorted.behind.columns());
        let mut steps = Vec::new();
        if self.config.retention.is_some() {
            steps.extend(self.keep_steps(sorted, &delivered));
        }
        steps.extend(self.row_steps(&owner, sorted));
        steps.extend(self.key_steps(&gone, &behind));
        steps.retain(|step| step.needed);
        let (mut statements, tells): (Vec<_>, Vec<_>) =
            steps.into_iter().map(|step| (step.statement, step.tells)).unzip();
        statements.push(Statement {
            sql: DURABLE,
            params: Vec::new(),
        });
        let found = lent.commit(WHAT, &statements).await?;
        let mut report = SettleReport::default();
        for (tells, rows) in tells.iter().zip(&found) {
            match tells {
                Tells::Nothing => {}
                Tells::Due => report.woke |= rows.iter().any(|row| row.try_get(0).unwrap_or(false)),
                Tells::Freed => report.freed = keys_in(rows)?,
            }
        }
        Ok(report)
    }

    /// Copies of what was confirmed, as long as the rows are there.
    fn keep_steps<'s>(&'s self, sorted: &'s Sorted<'_>, delivered: &'s Places<'_>) -> [Step<'s>; 4] {
        const NO_LEGS: &Vec<&str> = &Vec::new();
        let texts = &self.texts;
        let quiet = |needed, sql, params| Step::new(needed, sql, params, Tells::Nothing);
        let (confirmed, waiting) = (&sorted.confirmed, &sorted.confirmed_waiting);
        [
            quiet(!delivered.is_empty(), &texts.settle_kept, delivered.params()),
            quiet(!confirmed.is_empty(), &texts.settle_kept, confirmed.params()),
            quiet(
                !sorted.done.is_empty(),
                &texts.settle_done_kept,
                sorted.done.params_with(NO_LEGS),
            ),
            quiet(!waiting.is_empty(), &texts.settle_done_kept, waiting.params()),
        ]
    }

    /// The order matters: what leaves goes first and what fails next, so that a message which is to be held sees whom it
    /// has to wait for.
    fn row_steps<'s>(&'s self, owner: &'s OwnerId, sorted: &'s Sorted<'_>) -> [Step<'s>; 12] {
        let texts = &self.texts;
        let (delivered, done) = (&sorted.delivered, &sorted.done);
        let waits = |sql, waits: &'s Waits<'_>| Step::new(!waits.is_empty(), sql, waits.params(), Tells::Due);
        let deaths = |sql, deaths: &'s Deaths<'_>| Step::new(!deaths.is_empty(), sql, deaths.params(), Tells::Nothing);
        let quiet = |needed, sql, params| Step::new(needed, sql, params, Tells::Nothing);
        [
            quiet(
                !delivered.is_empty(),
                &texts.settle_delivered,
                delivered.params(&owner.0),
            ),
            quiet(!done.is_empty(), &texts.settle_done, done.params()),
            waits(&texts.wait_again, &sorted.again),
            waits(&texts.wait_ready, &sorted.ready),
            waits(&texts.split_waiting, &sorted.split),
            deaths(&texts.die_ready, &sorted.dead_ready),
            deaths(&texts.die_waiting, &sorted.dead_waiting),
            waits(&texts.wait_again, &sorted.again_held),
            waits(&texts.wait_ready, &sorted.ready_held),
            waits(&texts.split_waiting, &sorted.split_held),
            quiet(
                !sorted.moved_ready.is_empty(),
                &texts.remove_ready,
                sorted.moved_ready.ready_params(),
            ),
            quiet(
                !sorted.moved_waiting.is_empty(),
                &texts.remove_waiting,
                sorted.moved_waiting.params(),
            ),
        ]
    }

    /// Followers are looked at when all rows are where they belong.
    fn key_steps<'s>(&'s self, gone: &'s KeyColumns<'_>, behind: &'s KeyColumns<'_>) -> [Step<'s>; 3] {
        let texts = &self.texts;
        let some_gone = !gone.is_empty();
        [
            Step::new(
                !behind.is_empty(),
                &texts.hold_back,
                behind.params_with_seq(),
                Tells::Nothing,
            ),
            Step::new(some_gone, &texts.follow_on, gone.params(), Tells::Due),
            Step::new(some_gone, &texts.key_left, gone.params(), Tells::Freed),
        ]
    }
}

/// One statement of a settlement.
struct Step<'a> {
    needed: bool,
    statement: Statement<'a>,
    tells: Tells,
}

impl<'a> Step<'a> {
    fn new(needed: bool, sql: &'a str, params: Vec<Param<'a>>, tells: Tells) -> Self {
        Self {
            needed,
            statement: Statement { sql, params },
            tells,
        }
    }
}

/// What the rows say that a statement returns.
#[derive(Clone, Copy)]
enum Tells {
    Nothing,
    /// Whether something is due at once.
    Due,
    /// Keys of which nothing is left.
    Freed,
}

/// The lanes in an answer that is one array.
fn lanes_in(rows: &[Row]) -> Result<Vec<Lane>> {
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let lanes: Vec<i16> = column(WHAT, row, 0)?;
    Ok(lanes.into_iter().map(i16::unsigned_abs).collect())
}

fn keys_in(rows: &[Row]) -> Result<Vec<BlockedKey>> {
    rows.iter().map(|row| blocked_key(WHAT, row)).collect()
}

/// A key as several statements return it.
pub(crate) fn blocked_key(what: &str, row: &Row) -> Result<BlockedKey> {
    Ok(BlockedKey {
        lane: column::<i16>(what, row, 0)?.unsigned_abs(),
        key: column::<&str>(what, row, 1)?.into(),
        leg: column::<&str>(what, row, 2)?.into(),
    })
}
