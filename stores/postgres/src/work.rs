//! Room: work. Items of pull workers, leased row by row.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{
    Action, Claim, Command, EmitTransaction, Filter, Item, ItemCounts, ItemState, StoredItem, WorkStore, check_worker,
    error_text, lease_lost,
};
use sendoff::{Result, Uuid};
use tokio_postgres::types::Type;

use crate::PostgresStore;
use crate::decode::{column, count, micros, number};
use crate::item::claimed;
use crate::operate::{Act, stored};
use crate::pipeline::{Param, Statement};
use crate::pool::Pool;
use crate::store::Inner;

/// Rows are found by the index of what is due and by their number, however large or small the planner takes the table to
/// be. Commits are as durable as the server is configured: a hand-out that a crash forgets could be given out twice.
pub(crate) const SETTINGS: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; \
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off";

/// An item that is done and comes back after a crash is only done twice, so the commit is not waited for.
pub(crate) const DONE_SETTINGS: &str = "SET LOCAL synchronous_commit = off";

#[async_trait]
impl WorkStore for PostgresStore {
    async fn begin_items(&self) -> Result<Box<dyn EmitTransaction>> {
        Inner::begin(&self.0, &self.0.items).await
    }

    async fn claim_batch(&self, worker: &str, limit: usize, lease: Duration) -> Result<Vec<Item>> {
        check_worker(worker)?;
        loop {
            let (found, items) = self.0.claim_some(worker, limit, lease).await?;
            // Where all that was found had to be given up there may be more behind it.
            if found == 0 || !items.is_empty() {
                return Ok(items);
            }
        }
    }

    async fn extend(&self, worker: &str, claims: &[Claim], lease: Duration) -> Result<Vec<Claim>> {
        let (what, lease) = ("leases on items could not be renewed", micros(lease));
        let sql = &self.0.texts.extend_items;
        let more: [Param<'_>; 1] = [(&lease, Type::INT8)];
        on_held(&self.0.work_pool, what, sql, worker, claims, &more, Answer::Held).await
    }

    async fn release(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let what = "items could not be given back";
        on_held(
            &self.0.work_pool,
            what,
            &self.0.texts.release_items,
            worker,
            claims,
            &[],
            Answer::Held,
        )
        .await
    }

    async fn mark_success(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let (what, inner) = ("items could not be marked as done", &self.0);
        let (pool, sql, answer) = match inner.config.retention {
            Some(_) => (&inner.settle_pool, &inner.texts.keep_items, Answer::Held),
            None => (&inner.done_pool, &inner.texts.complete_items, Answer::Lost),
        };
        on_held(pool, what, sql, worker, claims, &[], answer).await
    }

    async fn mark_retry(&self, worker: &str, claim: Claim, delay: Duration, error: &str) -> Result<ItemState> {
        let what = "the item could not be marked for a retry";
        let (delay, error) = (micros(delay), error_text(error));
        let params: [Param<'_>; 5] = [
            (&worker, Type::TEXT),
            (&claim.seq, Type::INT8),
            (&claim.number, Type::INT8),
            (&delay, Type::INT8),
            (&error, Type::TEXT),
        ];
        let rows = self.0.work_pool.run(what, &self.0.texts.retry_item, &params).await?;
        let row = rows.first().ok_or_else(|| lease_lost(what, worker))?;
        Ok(match column(what, row, 0)? {
            true => ItemState::Failed,
            false => ItemState::Retry,
        })
    }

    async fn mark_failed(&self, worker: &str, claim: Claim, error: &str) -> Result<()> {
        let what = "the item could not be marked as failed";
        let error = error_text(error);
        let params: [Param<'_>; 4] = [
            (&worker, Type::TEXT),
            (&claim.seq, Type::INT8),
            (&claim.number, Type::INT8),
            (&error, Type::TEXT),
        ];
        let rows = self.0.work_pool.run(what, &self.0.texts.fail_item, &params).await?;
        rows.first().map(drop).ok_or_else(|| lease_lost(what, worker))
    }

    async fn reap(&self, stale_after: Duration) -> Result<u64> {
        let stale_after = micros(stale_after);
        let params: [Param<'_>; 1] = [(&stale_after, Type::INT8)];
        let what = "stale items could not be reaped";
        let reaped = self.0.operate_pool.run(what, &self.0.texts.reap_items, &params).await?;
        Ok(reaped.len() as u64)
    }

    async fn item_counts(&self) -> Result<ItemCounts> {
        let what = "items could not be counted";
        let rows = self.0.operate_pool.run(what, &self.0.texts.count_items, &[]).await?;
        let mut counts = ItemCounts::default();
        for row in &rows {
            counts.set(column(what, row, 0)?, count(column(what, row, 1)?));
        }
        Ok(counts)
    }

    async fn retry_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("failed items could not be retried", Action::RetryItems, asked, &who)?;
        let sql = &self.0.texts.retry_failed;
        self.0.act_on_failed(&act, sql, ids, limit, command).await
    }

    async fn items(&self, state: Option<ItemState>, ids: &[Uuid], after: i64, limit: usize) -> Result<Vec<StoredItem>> {
        let (what, limit) = ("items could not be listed", number(limit));
        let sql = self.0.texts.list_items.replace("{state}", &in_state(state));
        let params: [Param<'_>; 3] = [(&ids, Type::UUID_ARRAY), (&after, Type::INT8), (&limit, Type::INT8)];
        let rows = self.0.operate_pool.run(what, &sql, &params).await?;
        let item = |row| StoredItem::new(stored(row)?, column(what, row, 24)?, column(what, row, 25)?);
        rows.iter().map(item).collect()
    }

    async fn discard_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("failed items could not be discarded", Action::DiscardItems, asked, &who)?;
        let sql = &self.0.texts.discard_failed;
        self.0.act_on_failed(&act, sql, ids, limit, command).await
    }
}

/// The condition that an item is in this state, in the words of the index of failed ones.
fn in_state(state: Option<ItemState>) -> String {
    match state {
        None => "true".to_owned(),
        Some(ItemState::Failed) => {
            "i.state = 'failed' AND i.next_attempt_at IS NULL AND i.completed_at IS NULL".to_owned()
        }
        Some(state) => format!("i.state = '{}'", state.as_str()),
    }
}

impl Inner {
    async fn act_on_failed(
        &self,
        act: &Act<'_>,
        sql: &str,
        ids: &[Uuid],
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let limit = number(limit);
        let params: Vec<Param<'_>> = vec![(&ids, Type::UUID_ARRAY), (&limit, Type::INT8)];
        let (lent, changed) = self.begin_act(act, sql, params).await?;
        let changed = changed.len() as u64;
        self.end_batch(lent, act, command, changed).await?;
        Ok(changed)
    }

    /// How many rows were found, and those of them that are handed out.
    async fn claim_some(&self, worker: &str, limit: usize, lease: Duration) -> Result<(usize, Vec<Item>)> {
        let what = "items could not be claimed";
        let (limit, lease) = (number(limit), micros(lease));
        let params: [Param<'_>; 3] = [(&worker, Type::TEXT), (&limit, Type::INT8), (&lease, Type::INT8)];
        let statement = Statement {
            sql: &self.texts.claim_items,
            params: params.to_vec(),
        };
        let lent = self.work_pool.lend().await?;
        // The function has its settings itself.
        let rows = lent
            .run_taking(what, &[statement], true, &|_, row| Some(claimed(what, &row)))
            .await?;
        lent.give_back();
        let (mut found, mut taken) = (0, Vec::new());
        for row in rows.into_iter().flatten().flatten() {
            found += 1;
            taken.extend(row?);
        }
        // An update returns its rows as it comes across them.
        taken.sort_unstable_by_key(|row| (row.due, row.claim.seq));
        let mut items = Vec::with_capacity(taken.len());
        for row in taken {
            match row.item {
                Ok(item) => items.push(item),
                Err(why) => self.give_up_unreadable(worker, row.claim, &why).await?,
            }
        }
        Ok((found, items))
    }

    async fn give_up_unreadable(&self, worker: &str, claim: Claim, why: &str) -> Result<()> {
        let error = format!("it is unreadable: {why}");
        let params: [Param<'_>; 4] = [
            (&worker, Type::TEXT),
            (&claim.seq, Type::INT8),
            (&claim.number, Type::INT8),
            (&error, Type::TEXT),
        ];
        let what = "an unreadable item could not be given up";
        self.work_pool.run(what, &self.texts.fail_item, &params).await?;
        Ok(())
    }
}

/// Which items a statement names in its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Those that were held.
    Held,
    /// Those that were not.
    Lost,
}

/// Runs a statement on the items of each number, all in one round trip, and returns those that were not held.
async fn on_held(
    pool: &Pool,
    what: &str,
    sql: &str,
    worker: &str,
    claims: &[Claim],
    more: &[Param<'_>],
    answer: Answer,
) -> Result<Vec<Claim>> {
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let mut numbers: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for claim in claims {
        numbers.entry(claim.number).or_default().push(claim.seq);
    }
    let statements: Vec<Statement<'_>> = numbers
        .iter()
        .map(|(number, seqs)| {
            let mut params: Vec<Param<'_>> =
                vec![(&worker, Type::TEXT), (seqs, Type::INT8_ARRAY), (number, Type::INT8)];
            params.extend_from_slice(more);
            Statement { sql, params }
        })
        .collect();
    let lent = pool.lend().await?;
    let found = lent.run_all(what, &statements).await?;
    lent.give_back();
    let mut named = BTreeSet::new();
    for (rows, number) in found.iter().zip(numbers.keys()) {
        for row in rows {
            named.insert((column::<i64>(what, row, 0)?, *number));
        }
    }
    let is_lost = |claim: &&Claim| named.contains(&(claim.seq, claim.number)) == (answer == Answer::Lost);
    Ok(claims.iter().filter(is_lost).copied().collect())
}
