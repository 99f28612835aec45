//! Settle: writes the results of deliveries, in one transaction with the check that the relay still holds the lanes.

mod rows;

use std::collections::BTreeMap;

use sendoff::Result;
use sendoff::store::{BlockedKey, Lane, OwnerId, SettlePlan, SettleReport, Settlement};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::decode::{column, smallints};
use crate::pipeline::{Param, Statement};
use crate::pool::PooledConnection;
use crate::store::Inner;
use rows::{Deaths, Delivered, Kept, Keys, Rows, Waits};

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
        let epochs = SettlePlan::epochs(settlements);
        let keeps = self.config.settings.retention.is_some();
        let plan = SettlePlan::new(settlements, &epochs, keeps);
        let connection = self.settle_pool.get().await?;
        let report = if plan.only_delivered() && !keeps {
            let delivered = delivered(&plan, &epochs);
            self.settle_at_once(&connection, owner, &delivered).await?
        } else {
            self.settle_in_steps(&connection, owner, settlements, epochs).await?
        };
        connection.give_back();
        Ok(report)
    }

    /// The usual case: one round trip, fence included.
    async fn settle_at_once(
        &self,
        connection: &PooledConnection,
        owner: OwnerId,
        delivered: &Delivered,
    ) -> Result<SettleReport> {
        let params = delivered.params(&owner.0);
        let rows = connection.run(WHAT, &self.texts.settle_delivered, &params).await?;
        Ok(SettleReport {
            lost: lanes_in(&rows)?,
            ..SettleReport::default()
        })
    }

    /// The fence is asked first, and only what is behind the lanes that it lets pass is sent on.
    async fn settle_in_steps(
        &self,
        connection: &PooledConnection,
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
        // First of all: who waits for the end of somebody's pause has no lane in flight.
        let (lock, mut statements) = (self.pause_lock(), vec![fence]);
        let waits_for_pauses = SettlePlan::waits_for_pauses(settlements);
        if waits_for_pauses {
            statements.insert(0, lock.shared());
            statements.push(Statement {
                sql: &self.texts.paused,
                params: Vec::new(),
            });
        }
        let mut found = connection.begin(WHAT, &statements).await?;
        let paused = if waits_for_pauses { found.pop() } else { None };
        let held = lanes_in(&found.pop().unwrap_or_default())?;
        let lost = epochs.keys().copied().filter(|lane| !held.contains(lane)).collect();
        epochs.retain(|lane, _| held.contains(lane));
        let mut plan = SettlePlan::new(settlements, &epochs, self.config.settings.retention.is_some());
        if let Some(rows) = paused {
            let paused: Vec<String> = topics_in(&rows)?;
            plan.end_pauses(|name| paused.iter().any(|paused| paused == name));
        }
        let report = self.carry_out(connection, owner, &plan, &epochs).await?;
        Ok(SettleReport { lost, ..report })
    }

    /// Everything after the fence, in one go, in the order of the plan.
    async fn carry_out(
        &self,
        connection: &PooledConnection,
        owner: OwnerId,
        plan: &SettlePlan<'_>,
        epochs: &BTreeMap<Lane, i64>,
    ) -> Result<SettleReport> {
        let columns = Columns::new(plan, epochs);
        let mut steps = Vec::new();
        steps.extend(self.keep_steps(&columns));
        steps.extend(self.row_steps(&owner, &columns));
        steps.extend(self.key_steps(&columns));
        steps.retain(|step| step.needed);
        let (mut statements, tells): (Vec<_>, Vec<_>) =
            steps.into_iter().map(|step| (step.statement, step.tells)).unzip();
        statements.push(Statement {
            sql: DURABLE,
            params: Vec::new(),
        });
        let found = connection.commit(WHAT, &statements).await?;
        let mut report = SettleReport {
            woke: plan.due,
            ..SettleReport::default()
        };
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
    fn keep_steps<'s>(&'s self, columns: &'s Columns<'_>) -> [Step<'s>; 2] {
        let (ready, waiting) = (&columns.kept_ready, &columns.kept_waiting);
        let quiet = |kept: &Kept<'_>, sql, params| Step::new(!kept.is_empty(), sql, params, Tells::Nothing);
        [
            quiet(ready, &self.texts.settle_kept, ready.ready_params()),
            quiet(waiting, &self.texts.settle_done_kept, waiting.waiting_params()),
        ]
    }

    fn row_steps<'s>(&'s self, owner: &'s OwnerId, columns: &'s Columns<'_>) -> [Step<'s>; 12] {
        let texts = &self.texts;
        let waits = |sql, waits: &'s Waits<'_>| Step::new(!waits.is_empty(), sql, waits.params(), Tells::Due);
        let again = |waits: &'s Waits<'_>| {
            let params = waits.params_with_attempts();
            Step::new(!waits.is_empty(), &texts.wait_again, params, Tells::Due)
        };
        let deaths = |sql, deaths: &'s Deaths<'_>| Step::new(!deaths.is_empty(), sql, deaths.params(), Tells::Nothing);
        let quiet = |needed, sql, params| Step::new(needed, sql, params, Tells::Nothing);
        let (delivered, done) = (&columns.delivered, &columns.done);
        let (ready, waiting) = (&columns.remove_ready, &columns.remove_waiting);
        [
            quiet(
                !delivered.is_empty(),
                &texts.settle_delivered,
                delivered.params(&owner.0),
            ),
            quiet(!done.is_empty(), &texts.settle_done, done.params_with_deliveries()),
            again(&columns.wait_again),
            waits(&texts.wait_ready, &columns.wait_ready),
            waits(&texts.split_waiting, &columns.split),
            deaths(&texts.die_ready, &columns.die_ready),
            deaths(&texts.die_waiting, &columns.die_waiting),
            again(&columns.block_again),
            waits(&texts.wait_ready, &columns.block_ready),
            waits(&texts.split_waiting, &columns.block_split),
            quiet(!ready.is_empty(), &texts.remove_ready, ready.params()),
            quiet(
                !waiting.is_empty(),
                &texts.remove_waiting,
                waiting.params_with_deliveries(),
            ),
        ]
    }

    /// Followers are looked at when all rows are where they belong.
    fn key_steps<'s>(&'s self, columns: &'s Columns<'_>) -> [Step<'s>; 3] {
        let texts = &self.texts;
        let (gone, behind) = (&columns.gone, &columns.behind);
        let some_gone = !gone.is_empty();
        [
            Step::new(
                !behind.is_empty(),
                &texts.block_followers,
                behind.params_with_seq(),
                Tells::Nothing,
            ),
            Step::new(some_gone, &texts.follow_on, gone.params(), Tells::Due),
            Step::new(some_gone, &texts.key_left, gone.params(), Tells::Freed),
        ]
    }
}

/// The plan, each list as its statement takes it.
struct Columns<'a> {
    delivered: Delivered,
    kept_ready: Kept<'a>,
    kept_waiting: Kept<'a>,
    done: Rows<'a>,
    wait_again: Waits<'a>,
    wait_ready: Waits<'a>,
    split: Waits<'a>,
    die_ready: Deaths<'a>,
    die_waiting: Deaths<'a>,
    block_again: Waits<'a>,
    block_ready: Waits<'a>,
    block_split: Waits<'a>,
    remove_ready: Rows<'a>,
    remove_waiting: Rows<'a>,
    behind: Keys<'a>,
    gone: Keys<'a>,
}

impl<'a> Columns<'a> {
    fn new(plan: &'a SettlePlan<'a>, epochs: &BTreeMap<Lane, i64>) -> Self {
        Self {
            delivered: delivered(plan, epochs),
            kept_ready: Kept::new(&plan.kept_ready),
            kept_waiting: Kept::new(&plan.kept_waiting),
            done: Rows::of(&plan.done),
            wait_again: Waits::new(&plan.wait_again),
            wait_ready: Waits::new(&plan.wait_ready),
            split: Waits::new(&plan.split),
            die_ready: Deaths::new(&plan.die_ready),
            die_waiting: Deaths::new(&plan.die_waiting),
            block_again: Waits::new(&plan.block_again),
            block_ready: Waits::new(&plan.block_ready),
            block_split: Waits::new(&plan.block_split),
            remove_ready: Rows::of(&plan.remove_ready),
            remove_waiting: Rows::of(&plan.remove_waiting),
            behind: Keys::new(&plan.behind),
            gone: Keys::new(&plan.gone),
        }
    }
}

fn delivered(plan: &SettlePlan<'_>, epochs: &BTreeMap<Lane, i64>) -> Delivered {
    Delivered::new(&plan.delivered, |row_ref| {
        epochs.get(&row_ref.lane).copied().unwrap_or_default()
    })
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

/// The names of pauses of topics.
fn topics_in(rows: &[Row]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for row in rows {
        if column::<&str>(WHAT, row, 0)? == "topic" {
            names.push(column(WHAT, row, 1)?);
        }
    }
    Ok(names)
}

fn keys_in(rows: &[Row]) -> Result<Vec<BlockedKey>> {
    rows.iter().map(|row| blocked_key(WHAT, row)).collect()
}

/// A key as several statements return it.
pub(crate) fn blocked_key(what: &str, row: &Row) -> Result<BlockedKey> {
    Ok(BlockedKey {
        lane: column::<i16>(what, row, 0)?.unsigned_abs(),
        key: column::<&str>(what, row, 1)?.into(),
        sink: column::<&str>(what, row, 2)?.into(),
    })
}
