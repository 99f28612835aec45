//! Room: work. Items of pull workers, leased row by row: every change is a compare-and-set under the write lock.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use sendoff::store::{
    Action, CLAIM_BYTES, Claim, Command, EmitTransaction, Filter, Item, ItemCounts, ItemState, StoredItem, WorkStore,
    check_worker, error_text, lease_lost,
};
use sendoff::{Result, Uuid};

use crate::SqliteStore;
use crate::clock::{micros, to_time};
use crate::item::{Due, due};
use crate::lease::write;
use crate::operate::{Batch, as_asked, spellings, stored};
use crate::sql::Sql;
use crate::worker::Worker;

#[async_trait]
impl WorkStore for SqliteStore {
    async fn begin_items(&self) -> Result<Box<dyn EmitTransaction>> {
        self.0.begin(&self.0.items).await
    }

    async fn claim_batch(&self, worker: &str, limit: usize, lease: Duration) -> Result<Vec<Item>> {
        check_worker(worker)?;
        let (sql, worker, lease) = (self.0.sql.clone(), worker.to_owned(), micros(lease));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let work = move |connection: &mut Connection| {
            loop {
                let is_due: bool = connection
                    .prepare_cached(sql.claim_items.at(0))?
                    .query_row([], |row| row.get(0))?;
                if !is_due || limit == 0 {
                    return Ok(Vec::new());
                }
                let items = claim_some(connection, &sql, &worker, limit, lease)?;
                // Where all that was found had to be given up there may be more behind it.
                if !items.is_empty() {
                    return Ok(items);
                }
            }
        };
        self.0.work.call("items could not be claimed", work).await
    }

    async fn extend(&self, worker: &str, claims: &[Claim], lease: Duration) -> Result<Vec<Claim>> {
        let sql = self.0.sql.clone();
        let what = "leases on items could not be renewed";
        on_held(&self.0.work, what, worker, claims, Some(micros(lease)), move || {
            sql.extend_items.first().to_owned()
        })
        .await
    }

    async fn release(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let sql = self.0.sql.clone();
        let what = "items could not be given back";
        on_held(&self.0.work, what, worker, claims, None, move || {
            sql.release_items.first().to_owned()
        })
        .await
    }

    async fn mark_success(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let (sql, kept) = (self.0.sql.clone(), self.0.config.retention.is_some());
        let what = "items could not be marked as done";
        on_held(&self.0.settle, what, worker, claims, None, move || {
            let text = if kept { &sql.keep_items } else { &sql.complete_items };
            text.first().to_owned()
        })
        .await
    }

    async fn mark_retry(&self, worker: &str, claim: Claim, delay: Duration, error: &str) -> Result<ItemState> {
        let what = "the item could not be marked for a retry";
        let (sql, name, error) = (self.0.sql.clone(), worker.to_owned(), error_text(error));
        // A delay that is past every clock would overflow.
        let delay = micros(delay).min(i64::MAX / 4);
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let values = params![name, claim.seq, claim.number, delay, error];
            let mut statement = tx.prepare_cached(sql.retry_item.first())?;
            let failed: Option<bool> = statement.query_row(values, |row| row.get(0)).optional()?;
            drop(statement);
            tx.commit()?;
            Ok(failed)
        };
        match self.0.work.call(what, work).await? {
            None => Err(lease_lost(what, worker)),
            Some(true) => Ok(ItemState::Failed),
            Some(false) => Ok(ItemState::Retry),
        }
    }

    async fn mark_failed(&self, worker: &str, claim: Claim, error: &str) -> Result<()> {
        let what = "the item could not be marked as failed";
        let (sql, name, error) = (self.0.sql.clone(), worker.to_owned(), error_text(error));
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let values = params![name, claim.seq, claim.number, error];
            let changed = tx.prepare_cached(sql.fail_item.first())?.execute(values)?;
            tx.commit()?;
            Ok(changed)
        };
        match self.0.work.call(what, work).await? {
            0 => Err(lease_lost(what, worker)),
            _ => Ok(()),
        }
    }

    async fn reap(&self, stale_after: Duration) -> Result<u64> {
        let (sql, stale_after) = (self.0.sql.clone(), micros(stale_after));
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let reaped = tx.prepare_cached(sql.reap_items.first())?.execute([stale_after])?;
            tx.commit()?;
            Ok(reaped as u64)
        };
        self.0.operate.call("stale items could not be reaped", work).await
    }

    async fn item_counts(&self) -> Result<ItemCounts> {
        let sql = self.0.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut counts = ItemCounts::default();
            let mut statement = connection.prepare_cached(sql.count_items.first())?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (state, count): (String, i64) = (row.get(0)?, row.get(1)?);
                counts.set(&state, count.unsigned_abs());
            }
            Ok(counts)
        };
        self.0.operate.call("items could not be counted", work).await
    }

    async fn retry_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let batch = Batch {
            what: "failed items could not be retried",
            action: Action::RetryItems,
            asked: as_asked(asked),
        };
        let change = |sql: &Sql| sql.retry_failed.first().to_owned();
        act_on_failed(self, batch, change, ids, limit, command).await
    }

    async fn items(&self, state: Option<ItemState>, ids: &[Uuid], after: i64, limit: usize) -> Result<Vec<StoredItem>> {
        // As a literal: only then an index of one state is used.
        let condition = state.map_or("true".to_owned(), |state| format!("state = '{}'", state.as_str()));
        let sql = self.0.sql.list_items.first().replace("{state}", &condition);
        let (ids, limit) = (spellings(ids), i64::try_from(limit).unwrap_or(i64::MAX));
        let work = move |connection: &mut Connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let row = |row: &Row<'_>| {
                let until: Option<i64> = row.get(25)?;
                Ok((stored(row)?, row.get(24)?, until.map(to_time)))
            };
            let rows = statement.query_map(params![ids, after, limit], row)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = self.0.operate.call("items could not be listed", work).await?;
        let item = |(message, owner, until)| StoredItem::new(message, owner, until);
        rows.into_iter().map(item).collect()
    }

    async fn discard_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let batch = Batch {
            what: "failed items could not be discarded",
            action: Action::DiscardItems,
            asked: as_asked(asked),
        };
        let change = |sql: &Sql| sql.discard_failed.first().to_owned();
        act_on_failed(self, batch, change, ids, limit, command).await
    }
}

async fn act_on_failed(
    store: &SqliteStore,
    batch: Batch,
    change: impl Fn(&Sql) -> String + Send + 'static,
    ids: &[Uuid],
    limit: usize,
    command: &mut Command,
) -> Result<u64> {
    let (ids, limit) = (spellings(ids), i64::try_from(limit).unwrap_or(i64::MAX));
    let act = move |tx: &Transaction<'_>, sql: &Sql| {
        let changed = tx.prepare_cached(&change(sql))?.execute(params![ids, limit])?;
        Ok(changed as u64)
    };
    store.0.act_for(command, batch, act, |changed| *changed).await
}

/// Looks at what is due and takes it, one by one, under the write lock.
fn claim_some(
    connection: &mut Connection,
    sql: &Sql,
    worker: &str,
    limit: i64,
    lease: i64,
) -> rusqlite::Result<Vec<Item>> {
    let tx = write(connection)?;
    let mut statement = tx.prepare_cached(sql.claim_items.at(1))?;
    let (mut found, mut bytes): (Vec<Due>, usize) = (Vec::new(), 0);
    let mut rows = statement.query_map([limit], due)?;
    while let Some(due) = rows.next().filter(|_| bytes < CLAIM_BYTES).transpose()? {
        bytes += due.item.as_ref().map_or(0, |item| item.payload.len());
        found.push(due);
    }
    drop(rows);
    drop(statement);
    let mut items = Vec::with_capacity(found.len());
    {
        let mut take = tx.prepare_cached(sql.claim_items.at(2))?;
        let mut give_up = tx.prepare_cached(sql.claim_items.at(3))?;
        // So that a lease cannot end before the epoch of the clock's numbers.
        let lease = lease.min(i64::MAX / 4);
        for due in found {
            match due.item {
                Ok(item) => {
                    if take.execute(params![worker, due.seq, due.had, lease, due.number])? == 1 {
                        items.push(item);
                    }
                }
                Err(why) => {
                    give_up.execute(params![due.seq, due.had, why, due.number])?;
                }
            }
        }
    }
    tx.commit()?;
    Ok(items)
}

/// Runs a statement on each item in one transaction, and returns those that were not held.
async fn on_held(
    thread: &Worker,
    what: &'static str,
    worker: &str,
    claims: &[Claim],
    lease: Option<i64>,
    text: impl FnOnce() -> String + Send + 'static,
) -> Result<Vec<Claim>> {
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let (worker, claims) = (worker.to_owned(), claims.to_vec());
    let lease = lease.map(|lease| lease.min(i64::MAX / 4));
    let work = move |connection: &mut Connection| {
        let tx = write(connection)?;
        let mut lost = Vec::new();
        {
            let mut statement = tx.prepare_cached(&text())?;
            for claim in claims {
                let changed = match lease {
                    Some(lease) => statement.execute(params![worker, claim.seq, claim.number, lease])?,
                    None => statement.execute(params![worker, claim.seq, claim.number])?,
                };
                if changed == 0 {
                    lost.push(claim);
                }
            }
        }
        tx.commit()?;
        Ok(lost)
    };
    thread.call(what, work).await
}
