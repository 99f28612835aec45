//! Work: jobs of workers, leased row by row.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::params;
use sendoff::columns::position;
use sendoff::store::{
    Action, CLAIM_BYTES, Claim, Command, EmitTransaction, Filter, Job, JobCounts, JobState, LISTED_BYTES, SHOWN_BYTES,
    SHOWN_HEADERS, StoredJob, Text, WorkStore, check_worker, error_text, lease_lost, with_sizes,
};
use sendoff::{Result, Uuid};
use serde_json::json;

use crate::MysqlStore;
use crate::conflict::transact;
use crate::decode::{count, hex, limit, lossy_or_null, micros, names, number, shown, text, time_or_null, value};
use crate::error::odd_answer;
use crate::job::DueColumns;
use crate::operate::Act;
use crate::pool::PooledConnection;
use crate::store::Inner;

#[async_trait]
impl WorkStore for MysqlStore {
    async fn begin_jobs(&self) -> Result<Box<dyn EmitTransaction>> {
        Inner::begin(&self.0, &self.0.jobs).await
    }

    async fn claim_topics(&self, worker: &str, topics: &[String], limit: usize, lease: Duration) -> Result<Vec<Job>> {
        check_worker(worker)?;
        let what = "jobs could not be claimed";
        let topics = (!topics.is_empty()).then(|| json!(topics).to_string());
        loop {
            let (found, jobs) = transact!(self.0.work_pool, what, connection => {
                self.0.claim_some(&mut connection, what, worker, topics.as_deref(), limit, lease).await
            })?;
            // Where all that was found had to be given up there may be more behind it.
            if found == 0 || !jobs.is_empty() {
                return Ok(jobs);
            }
        }
    }

    async fn extend(&self, worker: &str, claims: &[Claim], lease: Duration) -> Result<Vec<Claim>> {
        let what = "leases on jobs could not be renewed";
        let sql = &self.0.texts.extend_jobs;
        self.0.on_held(what, sql, worker, claims, micros(lease)).await
    }

    async fn release(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let what = "jobs could not be released";
        self.0
            .on_held(what, &self.0.texts.release_jobs, worker, claims, 0)
            .await
    }

    async fn mark_success(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let texts = &self.0.texts;
        let sql = match self.0.config.settings.retention {
            Some(_) => &texts.keep_jobs,
            None => &texts.complete_jobs,
        };
        let what = "jobs could not be marked as completed";
        self.0.on_held(what, sql, worker, claims, 0).await
    }

    async fn mark_retry(&self, worker: &str, claim: Claim, delay: Duration, error: &str) -> Result<JobState> {
        let what = "the job could not be marked for a retry";
        let (sql, error) = (&self.0.texts.retry_job, error_text(error));
        transact!(self.0.work_pool, what, connection => {
            retry(&mut connection, what, sql, worker, claim, micros(delay), &error).await
        })
    }

    async fn mark_failed(&self, worker: &str, claim: Claim, error: &str) -> Result<()> {
        let what = "the job could not be marked as failed";
        let (sql, error) = (self.0.texts.fail_job.first(), error_text(error));
        let changed = transact!(self.0.work_pool, what, connection => {
            let values = params! {
                "seq" => claim.seq, "claim" => claim.number, "worker" => worker, "error" => &error,
            };
            connection.change(what, sql, values).await
        })?;
        match changed {
            0 => Err(lease_lost(what, worker)),
            _ => Ok(()),
        }
    }

    async fn reap(&self, stale_after: Duration) -> Result<u64> {
        let what = "stale jobs could not be reaped";
        let (sql, age) = (&self.0.texts.reap_jobs, micros(stale_after));
        transact!(self.0.operate_pool, what, connection => {
            change_found(&mut connection, what, sql, params! { "age" => age }).await
        })
    }

    async fn job_counts(&self) -> Result<JobCounts> {
        let what = "jobs could not be counted";
        let sql = self.0.texts.count_jobs.first();
        let mut counts = JobCounts::default();
        for row in self.0.operate_pool.rows(what, sql, ()).await? {
            counts.set(&text(what, &row, 0)?, count(number(what, &row, 1)?));
        }
        Ok(counts)
    }

    async fn retry_failed(&self, ids: &[Uuid], most: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("failed jobs could not be retried", Action::RetryJobs, asked, &who)?;
        let sql = &self.0.texts.retry_failed;
        self.0.act_on_failed(&act, sql, ids, most, command).await
    }

    async fn jobs(
        &self,
        state: Option<JobState>,
        ids: &[Uuid],
        payload: Option<&str>,
        after: i64,
        most: usize,
    ) -> Result<Vec<StoredJob>> {
        let sql = self.0.texts.list_jobs.first().replace("{state}", &in_state(state));
        let sql = with_sizes(&sql, LISTED_BYTES, LISTED_BYTES);
        self.0.jobs(&sql, ids, payload, after, most).await
    }

    async fn find_job(&self, id: Uuid) -> Result<Option<StoredJob>> {
        let sql = self.0.texts.list_jobs.first().replace("{state}", &in_state(None));
        let sql = with_sizes(&sql, SHOWN_BYTES, SHOWN_HEADERS);
        let found = self.0.jobs(&sql, &[id], None, i64::MIN, 1).await?;
        Ok(found.into_iter().next())
    }

    async fn discard_failed(&self, ids: &[Uuid], most: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let who = command.who().to_owned();
        let act = Act::new("failed jobs could not be discarded", Action::DiscardJobs, asked, &who)?;
        let sql = &self.0.texts.discard_failed;
        self.0.act_on_failed(&act, sql, ids, most, command).await
    }
}

/// The condition that a job is in this state. What has ended has no next attempt: by that, failed ones are found in the
/// index of what is due.
fn in_state(state: Option<JobState>) -> String {
    match state {
        None => "true".to_owned(),
        Some(JobState::Failed) => {
            "i.state = 'failed' AND i.next_attempt_at IS NULL AND i.completed_at IS NULL".to_owned()
        }
        Some(state) => format!("i.state = '{}'", state.as_str()),
    }
}

/// The parameters of a statement on jobs of these ids, or on all if there are none.
fn of_ids(ids: &[Uuid]) -> Vec<(String, mysql_async::Value)> {
    let texts: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    vec![
        ("all".to_owned(), ids.is_empty().into()),
        ("ids".to_owned(), json!(texts).to_string().into()),
    ]
}

impl Inner {
    async fn jobs(
        &self,
        sql: &str,
        ids: &[Uuid],
        payload: Option<&str>,
        after: i64,
        most: usize,
    ) -> Result<Vec<StoredJob>> {
        let what = "jobs could not be listed";
        let mut values = of_ids(ids);
        values.push(("payload".to_owned(), payload.into()));
        values.push(("after".to_owned(), after.into()));
        values.push(("limit".to_owned(), limit(most).into()));
        let rows = self.operate_pool.rows(what, sql, values).await?;
        let Some(first) = rows.first() else {
            return Ok(Vec::new());
        };
        let columns = first.columns_ref();
        let names = names(columns);
        let (owner, until) = (position(&names, "lease_owner")?, position(&names, "lease_until")?);
        let job = |(message, row)| {
            let until = time_or_null(what, row, until)?;
            StoredJob::new(message, lossy_or_null(row, owner), until)
        };
        shown(&rows)?.into_iter().zip(&rows).map(job).collect()
    }

    async fn act_on_failed(
        &self,
        act: &Act<'_>,
        sql: &Text,
        ids: &[Uuid],
        most: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let row = command.row();
        let (changed, row) = transact!(self.operate_pool, act.what, connection => {
            self.change_failed(&mut connection, act, sql, ids, most, row).await
        })?;
        command.is_noted(row);
        Ok(changed)
    }

    async fn change_failed(
        &self,
        connection: &mut PooledConnection,
        act: &Act<'_>,
        sql: &Text,
        ids: &[Uuid],
        most: usize,
        row: Option<i64>,
    ) -> Result<(u64, i64)> {
        let mut values = of_ids(ids);
        values.push(("limit".to_owned(), limit(most).into()));
        let changed = change_found(connection, act.what, sql, values.into()).await?;
        let row = self.write_batch(connection, act, row, changed).await?;
        Ok((changed, row))
    }

    /// How many rows were found, and those of them that are handed out.
    async fn claim_some(
        &self,
        connection: &mut PooledConnection,
        what: &str,
        worker: &str,
        topics: Option<&str>,
        most: usize,
        lease: Duration,
    ) -> Result<(usize, Vec<Job>)> {
        let sql = &self.texts.claim_jobs;
        // So that all of them together are no more than may come at once.
        let inline = CLAIM_BYTES / most.max(1);
        let values = params! { "limit" => limit(most), "inline" => limit(inline), "topics" => topics };
        let rows = connection.rows(what, sql.at(0), values).await?;
        let (mut jobs, mut bytes) = (Vec::with_capacity(rows.len()), 0);
        let columns = rows.first().map(DueColumns::of).transpose()?;
        for (row, columns) in rows.iter().zip(columns.iter().cycle()) {
            let due = columns.due(what, row)?;
            match due.job {
                // It is let go with the transaction, and stays due.
                Ok(_) if bytes >= CLAIM_BYTES => break,
                Ok(mut job) => {
                    bytes += due.bytes;
                    if due.is_large {
                        let found = connection
                            .rows(what, sql.at(3), params! { "seq" => due.claim.seq })
                            .await?;
                        job.payload = match found.first().map(|row| value(row, 0)) {
                            Some(mysql_async::Value::Bytes(bytes)) => bytes.clone().into(),
                            _ => return Err(odd_answer(what, "a payload is missing")),
                        };
                    }
                    jobs.push(job);
                }
                Err(why) => {
                    let values = params! {
                        "seq" => due.claim.seq, "claim" => due.claim.number, "error" => error_text(&why),
                    };
                    connection.change(what, sql.at(2), values).await?;
                }
            }
        }
        if !jobs.is_empty() {
            let claims = jobs.iter().map(|job| [job.claim.seq, job.claim.number]);
            let claims = json!(claims.collect::<Vec<_>>());
            let values = params! { "rows" => claims.to_string(), "worker" => worker, "lease" => micros(lease) };
            connection.change(what, sql.at(1), values).await?;
        }
        Ok((rows.len(), jobs))
    }

    /// Changes the jobs that are held, and returns those that were not.
    async fn on_held(&self, what: &str, sql: &Text, worker: &str, claims: &[Claim], lease: i64) -> Result<Vec<Claim>> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        transact!(self.work_pool, what, connection => change_held(&mut connection, what, sql, worker, claims, lease).await)
    }
}

async fn change_held(
    connection: &mut PooledConnection,
    what: &str,
    sql: &Text,
    worker: &str,
    claims: &[Claim],
    lease: i64,
) -> Result<Vec<Claim>> {
    let asked: Vec<i64> = claims.iter().map(|claim| claim.seq).collect();
    let look = sql
        .at(0)
        .replace("{jobs}", &list(&asked))
        .replace("{worker}", &hex(worker));
    let mut held = BTreeSet::new();
    for row in connection.text(what, &look).await? {
        held.insert((number(what, &row, 0)?, number(what, &row, 1)?));
    }
    let is_held = |claim: &&Claim| held.contains(&(claim.seq, claim.number));
    let seqs: Vec<i64> = claims.iter().filter(is_held).map(|claim| claim.seq).collect();
    if !seqs.is_empty() {
        let change = sql
            .at(1)
            .replace("{jobs}", &list(&seqs))
            .replace("{lease}", &lease.to_string());
        connection.script(what, &change).await?;
    }
    Ok(claims.iter().filter(|claim| !is_held(claim)).copied().collect())
}

async fn retry(
    connection: &mut PooledConnection,
    what: &str,
    sql: &Text,
    worker: &str,
    claim: Claim,
    delay: i64,
    error: &str,
) -> Result<JobState> {
    let values = params! { "seq" => claim.seq, "claim" => claim.number, "worker" => worker };
    let rows = connection.rows(what, sql.at(0), values).await?;
    let row = rows.first().ok_or_else(|| lease_lost(what, worker))?;
    let failed = number(what, row, 0)? == 1;
    let values = params! { "failed" => failed, "delay" => delay, "error" => error, "seq" => claim.seq };
    connection.change(what, sql.at(1), values).await?;
    Ok(if failed { JobState::Failed } else { JobState::Retry })
}

/// Changes the rows that the first statement locks, by the second, and tells how many.
pub(crate) async fn change_found(
    connection: &mut PooledConnection,
    what: &str,
    sql: &Text,
    values: mysql_async::Params,
) -> Result<u64> {
    let rows = connection.rows(what, sql.at(0), values).await?;
    let seqs: Vec<[i64; 1]> = rows
        .iter()
        .map(|row| Ok([number(what, row, 0)?]))
        .collect::<Result<_>>()?;
    if !seqs.is_empty() {
        let values = params! { "rows" => json!(seqs).to_string() };
        connection.change(what, sql.at(1), values).await?;
    }
    Ok(seqs.len() as u64)
}

fn list(seqs: &[i64]) -> String {
    seqs.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}
