//! Room: work. Items of pull workers, leased row by row.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::params;
use sendoff::store::{
    Action, CLAIM_BYTES, Claim, Command, EmitTransaction, Filter, Item, ItemCounts, ItemState, StoredItem, WorkStore,
    check_worker, error_text, lease_lost,
};
use sendoff::{Result, Uuid};
use serde_json::json;

use crate::MysqlStore;
use crate::conflict::transact;
use crate::decode::{count, hex, limit, lossy_or_null, micros, number, text, time_or_null, value};
use crate::error::odd_answer;
use crate::item::due;
use crate::operate::{Act, stored};
use crate::pool::Lent;
use crate::store::Inner;
use crate::texts::Text;

#[async_trait]
impl WorkStore for MysqlStore {
    async fn begin_items(&self) -> Result<Box<dyn EmitTransaction>> {
        Inner::begin(&self.0, &self.0.items).await
    }

    async fn claim_batch(&self, worker: &str, limit: usize, lease: Duration) -> Result<Vec<Item>> {
        check_worker(worker)?;
        let what = "items could not be claimed";
        loop {
            let (found, items) = transact!(self.0.work_pool, what, lent => {
                self.0.claim_some(&mut lent, what, worker, limit, lease).await
            })?;
            // Where all that was found had to be given up there may be more behind it.
            if found == 0 || !items.is_empty() {
                return Ok(items);
            }
        }
    }

    async fn extend(&self, worker: &str, claims: &[Claim], lease: Duration) -> Result<Vec<Claim>> {
        let what = "leases on items could not be renewed";
        let sql = &self.0.texts.extend_items;
        self.0.on_held(what, sql, worker, claims, micros(lease)).await
    }

    async fn release(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let what = "items could not be given back";
        self.0
            .on_held(what, &self.0.texts.release_items, worker, claims, 0)
            .await
    }

    async fn mark_success(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let texts = &self.0.texts;
        let sql = match self.0.config.retention {
            Some(_) => &texts.keep_items,
            None => &texts.complete_items,
        };
        let what = "items could not be marked as done";
        self.0.on_held(what, sql, worker, claims, 0).await
    }

    async fn mark_retry(&self, worker: &str, claim: Claim, delay: Duration, error: &str) -> Result<ItemState> {
        let what = "the item could not be marked for a retry";
        let (sql, error) = (&self.0.texts.retry_item, error_text(error));
        transact!(self.0.work_pool, what, lent => {
            retry(&mut lent, what, sql, worker, claim, micros(delay), &error).await
        })
    }

    async fn mark_failed(&self, worker: &str, claim: Claim, error: &str) -> Result<()> {
        let what = "the item could not be marked as failed";
        let (sql, error) = (self.0.texts.fail_item.first(), error_text(error));
        let changed = transact!(self.0.work_pool, what, lent => {
            let values = params! {
                "seq" => claim.seq, "claim" => claim.number, "worker" => worker, "error" => &error,
            };
            lent.change(what, sql, values).await
        })?;
        match changed {
            0 => Err(lease_lost(what, worker)),
            _ => Ok(()),
        }
    }

    async fn reap(&self, stale_after: Duration) -> Result<u64> {
        let what = "stale items could not be reaped";
        let (sql, age) = (&self.0.texts.reap_items, micros(stale_after));
        transact!(self.0.operate_pool, what, lent => {
            change_found(&mut lent, what, sql, params! { "age" => age }).await
        })
    }

    async fn item_counts(&self) -> Result<ItemCounts> {
        let what = "items could not be counted";
        let sql = self.0.texts.count_items.first();
        let mut counts = ItemCounts::default();
        for row in self.0.operate_pool.rows(what, sql, ()).await? {
            counts.set(&text(what, &row, 0)?, count(number(what, &row, 1)?));
        }
        Ok(counts)
    }

    async fn retry_failed(&self, ids: &[Uuid], most: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("failed items could not be retried", Action::RetryItems, asked, &who)?;
        let sql = &self.0.texts.retry_failed;
        self.0.act_on_failed(&act, sql, ids, most, command).await
    }

    async fn items(&self, state: Option<ItemState>, ids: &[Uuid], after: i64, most: usize) -> Result<Vec<StoredItem>> {
        let what = "items could not be listed";
        let sql = self.0.texts.list_items.first().replace("{state}", &in_state(state));
        let mut values = of_ids(ids);
        values.push(("after".to_owned(), after.into()));
        values.push(("limit".to_owned(), limit(most).into()));
        let rows = self.0.operate_pool.rows(what, &sql, values).await?;
        let item = |row| StoredItem::new(stored(row)?, lossy_or_null(row, 24), time_or_null(what, row, 25)?);
        rows.iter().map(item).collect()
    }

    async fn discard_failed(&self, ids: &[Uuid], most: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("failed items could not be discarded", Action::DiscardItems, asked, &who)?;
        let sql = &self.0.texts.discard_failed;
        self.0.act_on_failed(&act, sql, ids, most, command).await
    }
}

/// The condition that an item is in this state. What has ended has no next attempt: by that, failed ones are found in the
/// index of what is due.
fn in_state(state: Option<ItemState>) -> String {
    match state {
        None => "true".to_owned(),
        Some(ItemState::Failed) => {
            "i.state = 'failed' AND i.next_attempt_at IS NULL AND i.completed_at IS NULL".to_owned()
        }
        Some(state) => format!("i.state = '{}'", state.as_str()),
    }
}

/// The parameters of a statement on items of these ids, or on all if there are none.
fn of_ids(ids: &[Uuid]) -> Vec<(String, mysql_async::Value)> {
    let texts: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    vec![
        ("all".to_owned(), ids.is_empty().into()),
        ("ids".to_owned(), json!(texts).to_string().into()),
    ]
}

impl Inner {
    async fn act_on_failed(
        &self,
        act: &Act<'_>,
        sql: &Text,
        ids: &[Uuid],
        most: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let row = command.row();
        let (changed, row) = transact!(self.operate_pool, act.what, lent => {
            self.change_failed(&mut lent, act, sql, ids, most, row).await
        })?;
        command.is_noted(row);
        Ok(changed)
    }

    async fn change_failed(
        &self,
        lent: &mut Lent,
        act: &Act<'_>,
        sql: &Text,
        ids: &[Uuid],
        most: usize,
        row: Option<i64>,
    ) -> Result<(u64, i64)> {
        let mut values = of_ids(ids);
        values.push(("limit".to_owned(), limit(most).into()));
        let changed = change_found(lent, act.what, sql, values.into()).await?;
        let row = self.write_batch(lent, act, row, changed).await?;
        Ok((changed, row))
    }

    /// How many rows were found, and those of them that are handed out.
    async fn claim_some(
        &self,
        lent: &mut Lent,
        what: &str,
        worker: &str,
        most: usize,
        lease: Duration,
    ) -> Result<(usize, Vec<Item>)> {
        let sql = &self.texts.claim_items;
        // So that all of them together are no more than may come at once.
        let inline = CLAIM_BYTES / most.max(1);
        let values = params! { "limit" => limit(most), "inline" => limit(inline) };
        let rows = lent.rows(what, sql.at(0), values).await?;
        let (mut items, mut bytes) = (Vec::with_capacity(rows.len()), 0);
        for row in &rows {
            let due = due(what, row)?;
            match due.item {
                // It is let go with the transaction, and stays due.
                Ok(_) if bytes >= CLAIM_BYTES => break,
                Ok(mut item) => {
                    bytes += due.bytes;
                    if due.is_large {
                        let found = lent.rows(what, sql.at(3), params! { "seq" => due.claim.seq }).await?;
                        item.payload = match found.first().map(|row| value(row, 0)) {
                            Some(mysql_async::Value::Bytes(bytes)) => bytes.clone().into(),
                            _ => return Err(odd_answer(what, "a payload is missing")),
                        };
                    }
                    items.push(item);
                }
                Err(why) => {
                    let values = params! {
                        "seq" => due.claim.seq, "claim" => due.claim.number, "error" => error_text(&why),
                    };
                    lent.change(what, sql.at(2), values).await?;
                }
            }
        }
        if !items.is_empty() {
            let claims = items.iter().map(|item| [item.claim.seq, item.claim.number]);
            let claims = json!(claims.collect::<Vec<_>>());
            let values = params! { "rows" => claims.to_string(), "worker" => worker, "lease" => micros(lease) };
            lent.change(what, sql.at(1), values).await?;
        }
        Ok((rows.len(), items))
    }

    /// Changes the items that are held, and returns those that were not.
    async fn on_held(&self, what: &str, sql: &Text, worker: &str, claims: &[Claim], lease: i64) -> Result<Vec<Claim>> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        transact!(self.work_pool, what, lent => change_held(&mut lent, what, sql, worker, claims, lease).await)
    }
}

async fn change_held(
    lent: &mut Lent,
    what: &str,
    sql: &Text,
    worker: &str,
    claims: &[Claim],
    lease: i64,
) -> Result<Vec<Claim>> {
    let asked: Vec<i64> = claims.iter().map(|claim| claim.seq).collect();
    let look = sql
        .at(0)
        .replace("{items}", &list(&asked))
        .replace("{worker}", &hex(worker));
    let mut held = BTreeSet::new();
    for row in lent.text(what, &look).await? {
        held.insert((number(what, &row, 0)?, number(what, &row, 1)?));
    }
    let is_held = |claim: &&Claim| held.contains(&(claim.seq, claim.number));
    let seqs: Vec<i64> = claims.iter().filter(is_held).map(|claim| claim.seq).collect();
    if !seqs.is_empty() {
        let change = sql
            .at(1)
            .replace("{items}", &list(&seqs))
            .replace("{lease}", &lease.to_string());
        lent.script(what, &change).await?;
    }
    Ok(claims.iter().filter(|claim| !is_held(claim)).copied().collect())
}

async fn retry(
    lent: &mut Lent,
    what: &str,
    sql: &Text,
    worker: &str,
    claim: Claim,
    delay: i64,
    error: &str,
) -> Result<ItemState> {
    let values = params! { "seq" => claim.seq, "claim" => claim.number, "worker" => worker };
    let rows = lent.rows(what, sql.at(0), values).await?;
    let row = rows.first().ok_or_else(|| lease_lost(what, worker))?;
    let failed = number(what, row, 0)? == 1;
    let values = params! { "failed" => failed, "delay" => delay, "error" => error, "seq" => claim.seq };
    lent.change(what, sql.at(1), values).await?;
    Ok(if failed { ItemState::Failed } else { ItemState::Retry })
}

/// Changes the rows that the first statement locks, by the second, and tells how many.
pub(crate) async fn change_found(lent: &mut Lent, what: &str, sql: &Text, values: mysql_async::Params) -> Result<u64> {
    let rows = lent.rows(what, sql.at(0), values).await?;
    let seqs: Vec<[i64; 1]> = rows
        .iter()
        .map(|row| Ok([number(what, row, 0)?]))
        .collect::<Result<_>>()?;
    if !seqs.is_empty() {
        let values = params! { "rows" => json!(seqs).to_string() };
        lent.change(what, sql.at(1), values).await?;
    }
    Ok(seqs.len() as u64)
}

fn list(seqs: &[i64]) -> String {
    seqs.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}
