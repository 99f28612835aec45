//! Work: jobs of workers, leased row by row. Every change is a compare-and-set under the write lock.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use sendoff::store::{
    Action, CLAIM_BYTES, Claim, Command, EmitTransaction, Filter, Job, JobCounts, JobState, LISTED_BYTES, SHOWN_BYTES,
    SHOWN_HEADERS, Stored, StoredJob, WorkStore, check_worker, error_text, lease_lost, with_sizes,
};
use sendoff::{Result, Uuid};

use crate::SqliteStore;
use crate::clock::{micros, to_time};
use crate::decode::{Source, shown_columns};
use crate::job::{Due, DueColumns};
use crate::lease::write;
use crate::operate::{Batch, as_asked, spellings};
use crate::sql::Sql;
use crate::worker::Worker;

#[async_trait]
impl WorkStore for SqliteStore {
    async fn begin_jobs(&self) -> Result<Box<dyn EmitTransaction>> {
        self.0.begin(&self.0.jobs).await
    }

    async fn claim_topics(&self, worker: &str, topics: &[String], limit: usize, lease: Duration) -> Result<Vec<Job>> {
        check_worker(worker)?;
        let (sql, worker, lease) = (self.0.sql.clone(), worker.to_owned(), micros(lease));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let topics = (!topics.is_empty()).then(|| serde_json::json!(topics).to_string());
        let work = move |connection: &mut Connection| {
            loop {
                let is_due: bool = connection
                    .prepare_cached(sql.claim_jobs.at(0))?
                    .query_row([&topics], |row| row.get(0))?;
                if !is_due || limit == 0 {
                    return Ok(Vec::new());
                }
                let jobs = claim_some(connection, &sql, &worker, topics.as_deref(), limit, lease)?;
                // Where all that was found had to be given up there may be more behind it.
                if !jobs.is_empty() {
                    return Ok(jobs);
                }
            }
        };
        self.0.work.call("jobs could not be claimed", work).await
    }

    async fn extend(&self, worker: &str, claims: &[Claim], lease: Duration) -> Result<Vec<Claim>> {
        let sql = self.0.sql.clone();
        let what = "leases on jobs could not be renewed";
        on_held(&self.0.work, what, worker, claims, Some(micros(lease)), move || {
            sql.extend_jobs.first().to_owned()
        })
        .await
    }

    async fn release(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let sql = self.0.sql.clone();
        let what = "jobs could not be released";
        on_held(&self.0.work, what, worker, claims, None, move || {
            sql.release_jobs.first().to_owned()
        })
        .await
    }

    async fn mark_success(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let (sql, kept) = (self.0.sql.clone(), self.0.config.settings.retention.is_some());
        let what = "jobs could not be marked as completed";
        on_held(&self.0.settle, what, worker, claims, None, move || {
            let text = if kept { &sql.keep_jobs } else { &sql.complete_jobs };
            text.first().to_owned()
        })
        .await
    }

    async fn mark_retry(&self, worker: &str, claim: Claim, delay: Duration, error: &str) -> Result<JobState> {
        let what = "the job could not be marked for a retry";
        let (sql, name, error) = (self.0.sql.clone(), worker.to_owned(), error_text(error));
        // A delay that is past every clock would overflow.
        let delay = micros(delay).min(i64::MAX / 4);
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let values = params![name, claim.seq, claim.number, delay, error];
            let mut statement = tx.prepare_cached(sql.retry_job.first())?;
            let failed: Option<bool> = statement.query_row(values, |row| row.get(0)).optional()?;
            drop(statement);
            tx.commit()?;
            Ok(failed)
        };
        match self.0.work.call(what, work).await? {
            None => Err(lease_lost(what, worker)),
            Some(true) => Ok(JobState::Failed),
            Some(false) => Ok(JobState::Retry),
        }
    }

    async fn mark_failed(&self, worker: &str, claim: Claim, error: &str) -> Result<()> {
        let what = "the job could not be marked as failed";
        let (sql, name, error) = (self.0.sql.clone(), worker.to_owned(), error_text(error));
        let work = move |connection: &mut Connection| {
            let tx = write(connection)?;
            let values = params![name, claim.seq, claim.number, error];
            let changed = tx.prepare_cached(sql.fail_job.first())?.execute(values)?;
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
            let reaped = tx.prepare_cached(sql.reap_jobs.first())?.execute([stale_after])?;
            tx.commit()?;
            Ok(reaped as u64)
        };
        self.0.operate.call("stale jobs could not be reaped", work).await
    }

    async fn job_counts(&self) -> Result<JobCounts> {
        let sql = self.0.sql.clone();
        let work = move |connection: &mut Connection| {
            let mut counts = JobCounts::default();
            let mut statement = connection.prepare_cached(sql.count_jobs.first())?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (state, count): (String, i64) = (row.get(0)?, row.get(1)?);
                counts.set(&state, count.unsigned_abs());
            }
            Ok(counts)
        };
        self.0.operate.call("jobs could not be counted", work).await
    }

    async fn retry_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let batch = Batch {
            what: "failed jobs could not be retried",
            action: Action::RetryJobs,
            asked: as_asked(asked),
        };
        let change = |sql: &Sql| sql.retry_failed.first().to_owned();
        act_on_failed(self, batch, change, ids, limit, command).await
    }

    async fn jobs(
        &self,
        state: Option<JobState>,
        ids: &[Uuid],
        payload: Option<&str>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredJob>> {
        // As a literal: only then an index of one state is used.
        let condition = state.map_or("true".to_owned(), |state| format!("state = '{}'", state.as_str()));
        let sql = self.0.sql.list_jobs.first().replace("{state}", &condition);
        let sql = with_sizes(&sql, LISTED_BYTES, LISTED_BYTES);
        jobs(&self.0.operate, sql, ids, payload, after, limit).await
    }

    async fn find_job(&self, id: Uuid) -> Result<Option<StoredJob>> {
        let sql = self.0.sql.list_jobs.first().replace("{state}", "true");
        let sql = with_sizes(&sql, SHOWN_BYTES, SHOWN_HEADERS);
        let found = jobs(&self.0.operate, sql, &[id], None, i64::MIN, 1).await?;
        Ok(found.into_iter().next())
    }

    async fn discard_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let batch = Batch {
            what: "failed jobs could not be discarded",
            action: Action::DiscardJobs,
            asked: as_asked(asked),
        };
        let change = |sql: &Sql| sql.discard_failed.first().to_owned();
        act_on_failed(self, batch, change, ids, limit, command).await
    }
}

async fn jobs(
    worker: &Worker,
    sql: String,
    ids: &[Uuid],
    payload: Option<&str>,
    after: i64,
    limit: usize,
) -> Result<Vec<StoredJob>> {
    let (ids, limit) = (spellings(ids), i64::try_from(limit).unwrap_or(i64::MAX));
    let payload = payload.map(str::to_owned);
    let work = move |connection: &mut Connection| {
        let mut statement = connection.prepare_cached(&sql)?;
        let columns = shown_columns(&statement)?;
        let row = |row: &Row<'_>| {
            let until: Option<i64> = row.get("lease_until")?;
            Ok((
                Stored::read(&Source(row), &columns),
                row.get("lease_owner")?,
                until.map(to_time),
            ))
        };
        let rows = statement.query_map(params![ids, after, limit, payload], row)?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    let rows = worker.call("jobs could not be listed", work).await?;
    let job = |(message, owner, until): (Result<Stored>, _, _)| StoredJob::new(message?, owner, until);
    rows.into_iter().map(job).collect()
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
    topics: Option<&str>,
    limit: i64,
    lease: i64,
) -> rusqlite::Result<Vec<Job>> {
    let tx = write(connection)?;
    let mut statement = tx.prepare_cached(sql.claim_jobs.at(1))?;
    let (mut found, mut bytes): (Vec<Due>, usize) = (Vec::new(), 0);
    let columns = DueColumns::of(&statement)?;
    let mut rows = statement.query_map(params![limit, topics], |row| columns.due(row))?;
    while let Some(due) = rows.next().filter(|_| bytes < CLAIM_BYTES).transpose()? {
        bytes += due.job.as_ref().map_or(0, |job| job.payload.len());
        found.push(due);
    }
    drop(rows);
    drop(statement);
    let mut jobs = Vec::with_capacity(found.len());
    {
        let mut take = tx.prepare_cached(sql.claim_jobs.at(2))?;
        let mut give_up = tx.prepare_cached(sql.claim_jobs.at(3))?;
        // So that a lease cannot end before the epoch of the clock's numbers.
        let lease = lease.min(i64::MAX / 4);
        for due in found {
            match due.job {
                Ok(job) => {
                    if take.execute(params![worker, due.seq, due.had, lease, due.number])? == 1 {
                        jobs.push(job);
                    }
                }
                Err(why) => {
                    give_up.execute(params![due.seq, due.had, why, due.number])?;
                }
            }
        }
    }
    tx.commit()?;
    Ok(jobs)
}

/// Runs a statement on each job in one transaction, and returns those that were not held.
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
