//! Work: jobs of workers, leased row by row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::store::{
    Claim, Command, EmitTransaction, Filter, Job, JobCounts, JobState, LISTED_BYTES, SHOWN_BYTES, SHOWN_HEADERS,
    StoredJob, WorkStore, check_worker, error_text, lease_lost, with_sizes,
};
use sendoff::{Result, Uuid};
use tokio_postgres::types::Type;

use crate::PostgresStore;
use crate::decode::{column, count, micros, named, number, shown};
use crate::job::ClaimColumns;
use crate::operate::as_json;
use crate::pipeline::{Param, Statement};
use crate::pool::Pool;
use crate::store::Inner;

/// Rows are found by the index of what is due and by their number, however large or small the planner takes the table to
/// be. Commits are as durable as the server is configured: a hand-out that a crash forgets could be given out twice.
pub(crate) const SETTINGS: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; \
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off";

/// A job that is done and comes back after a crash is only done twice, so the commit is not waited for.
pub(crate) const DONE_SETTINGS: &str = "SET LOCAL synchronous_commit = off";

#[async_trait]
impl WorkStore for PostgresStore {
    async fn begin_jobs(&self) -> Result<Box<dyn EmitTransaction>> {
        Inner::begin(&self.0, &self.0.jobs).await
    }

    async fn claim_topics(&self, worker: &str, topics: &[String], limit: usize, lease: Duration) -> Result<Vec<Job>> {
        check_worker(worker)?;
        loop {
            let (found, jobs) = self.0.claim_some(worker, topics, limit, lease).await?;
            // Where all that was found had to be given up there may be more behind it.
            if found == 0 || !jobs.is_empty() {
                return Ok(jobs);
            }
        }
    }

    async fn extend(&self, worker: &str, claims: &[Claim], lease: Duration) -> Result<Vec<Claim>> {
        let (what, lease) = ("leases on jobs could not be renewed", micros(lease));
        let sql = &self.0.texts.extend_jobs;
        let more: [Param<'_>; 1] = [(&lease, Type::INT8)];
        on_held(&self.0.work_pool, what, sql, worker, claims, &more, Answer::Held).await
    }

    async fn release(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let what = "jobs could not be released";
        on_held(
            &self.0.work_pool,
            what,
            &self.0.texts.release_jobs,
            worker,
            claims,
            &[],
            Answer::Held,
        )
        .await
    }

    async fn mark_success(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>> {
        let (what, inner) = ("jobs could not be marked as completed", &self.0);
        let (pool, sql, answer) = match inner.config.settings.retention {
            Some(_) => (&inner.settle_pool, &inner.texts.keep_jobs, Answer::Held),
            None => (&inner.done_pool, &inner.texts.complete_jobs, Answer::Lost),
        };
        on_held(pool, what, sql, worker, claims, &[], answer).await
    }

    async fn mark_retry(&self, worker: &str, claim: Claim, delay: Duration, error: &str) -> Result<JobState> {
        let what = "the job could not be marked for a retry";
        let (delay, error) = (micros(delay), error_text(error));
        let params: [Param<'_>; 5] = [
            (&worker, Type::TEXT),
            (&claim.seq, Type::INT8),
            (&claim.number, Type::INT8),
            (&delay, Type::INT8),
            (&error, Type::TEXT),
        ];
        let rows = self.0.work_pool.run(what, &self.0.texts.retry_job, &params).await?;
        let row = rows.first().ok_or_else(|| lease_lost(what, worker))?;
        Ok(match column(what, row, 0)? {
            true => JobState::Failed,
            false => JobState::Retry,
        })
    }

    async fn mark_failed(&self, worker: &str, claim: Claim, error: &str) -> Result<()> {
        let what = "the job could not be marked as failed";
        let error = error_text(error);
        let params: [Param<'_>; 4] = [
            (&worker, Type::TEXT),
            (&claim.seq, Type::INT8),
            (&claim.number, Type::INT8),
            (&error, Type::TEXT),
        ];
        let rows = self.0.work_pool.run(what, &self.0.texts.fail_job, &params).await?;
        rows.first().map(drop).ok_or_else(|| lease_lost(what, worker))
    }

    async fn reap(&self, stale_after: Duration) -> Result<u64> {
        let stale_after = micros(stale_after);
        let params: [Param<'_>; 1] = [(&stale_after, Type::INT8)];
        let what = "stale jobs could not be reaped";
        let reaped = self.0.operate_pool.run(what, &self.0.texts.reap_jobs, &params).await?;
        Ok(reaped.len() as u64)
    }

    async fn job_counts(&self) -> Result<JobCounts> {
        let what = "jobs could not be counted";
        let rows = self.0.operate_pool.run(what, &self.0.texts.count_jobs, &[]).await?;
        let mut counts = JobCounts::default();
        for row in &rows {
            counts.set(column(what, row, 0)?, count(column(what, row, 1)?));
        }
        Ok(counts)
    }

    async fn retry_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let (what, sql) = ("failed jobs could not be retried", &self.0.texts.retry_failed);
        self.0.act_on_failed(what, sql, ids, limit, asked, command).await
    }

    async fn jobs(
        &self,
        state: Option<JobState>,
        ids: &[Uuid],
        payload: Option<&str>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredJob>> {
        let sql = self.0.texts.list_jobs.replace("{state}", &in_state(state));
        let sql = with_sizes(&sql, LISTED_BYTES, LISTED_BYTES);
        self.0.jobs(&sql, ids, payload, after, limit).await
    }

    async fn find_job(&self, id: Uuid) -> Result<Option<StoredJob>> {
        let sql = self.0.texts.list_jobs.replace("{state}", &in_state(None));
        let sql = with_sizes(&sql, SHOWN_BYTES, SHOWN_HEADERS);
        let found = self.0.jobs(&sql, &[id], None, i64::MIN, 1).await?;
        Ok(found.into_iter().next())
    }

    async fn discard_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64> {
        let (what, sql) = ("failed jobs could not be discarded", &self.0.texts.discard_failed);
        self.0.act_on_failed(what, sql, ids, limit, asked, command).await
    }
}

/// The condition that a job is in this state, in the words of the index of failed ones.
fn in_state(state: Option<JobState>) -> String {
    match state {
        None => "true".to_owned(),
        Some(JobState::Failed) => {
            "i.state = 'failed' AND i.next_attempt_at IS NULL AND i.completed_at IS NULL".to_owned()
        }
        Some(state) => format!("i.state = '{}'", state.as_str()),
    }
}

impl Inner {
    async fn jobs(
        &self,
        sql: &str,
        ids: &[Uuid],
        payload: Option<&str>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredJob>> {
        let (what, limit, payload) = ("jobs could not be listed", number(limit), payload.map(str::as_bytes));
        let params: [Param<'_>; 4] = [
            (&ids, Type::UUID_ARRAY),
            (&after, Type::INT8),
            (&limit, Type::INT8),
            (&payload, Type::BYTEA),
        ];
        let rows = self.operate_pool.run(what, sql, &params).await?;
        let job = |(message, row)| {
            let until = named(what, row, "lease_until")?;
            StoredJob::new(message, named(what, row, "lease_owner")?, until)
        };
        shown(&rows)?.into_iter().zip(&rows).map(job).collect()
    }

    async fn act_on_failed(
        &self,
        what: &str,
        sql: &str,
        ids: &[Uuid],
        limit: usize,
        asked: &Filter,
        command: &mut Command,
    ) -> Result<u64> {
        let (filter, limit) = (as_json(what, asked)?, number(limit));
        let params: [Param<'_>; 3] = [(&filter, Type::TEXT), (&limit, Type::INT8), (&ids, Type::UUID_ARRAY)];
        Ok(self.act(what, sql, &params, command).await?.affected)
    }

    /// How many rows were found, and those of them that are handed out.
    async fn claim_some(
        &self,
        worker: &str,
        topics: &[String],
        limit: usize,
        lease: Duration,
    ) -> Result<(usize, Vec<Job>)> {
        let what = "jobs could not be claimed";
        let (limit, lease) = (number(limit), micros(lease));
        let params: [Param<'_>; 4] = [
            (&worker, Type::TEXT),
            (&limit, Type::INT8),
            (&lease, Type::INT8),
            (&topics, Type::TEXT_ARRAY),
        ];
        let statement = Statement {
            sql: &self.texts.claim_jobs,
            params: params.to_vec(),
        };
        let connection = self.work_pool.get().await?;
        let columns = OnceLock::new();
        let take = |_: usize, row: tokio_postgres::Row| {
            let columns = ClaimColumns::once(&columns, &row);
            Some(columns.and_then(|columns| columns.claimed(what, &row)))
        };
        // The function has its settings itself.
        let rows = connection.run_taking(what, &[statement], true, &take).await?;
        connection.give_back();
        let (mut found, mut taken) = (0, Vec::new());
        for row in rows.into_iter().flatten().flatten() {
            found += 1;
            taken.extend(row?);
        }
        // An update returns its rows as it comes across them.
        taken.sort_unstable_by_key(|row| (row.due, row.claim.seq));
        let mut jobs = Vec::with_capacity(taken.len());
        for row in taken {
            match row.job {
                Ok(job) => jobs.push(job),
                Err(why) => self.give_up_unreadable(worker, row.claim, &why).await?,
            }
        }
        Ok((found, jobs))
    }

    async fn give_up_unreadable(&self, worker: &str, claim: Claim, why: &str) -> Result<()> {
        let error = format!("the row is unreadable: {why}");
        let params: [Param<'_>; 4] = [
            (&worker, Type::TEXT),
            (&claim.seq, Type::INT8),
            (&claim.number, Type::INT8),
            (&error, Type::TEXT),
        ];
        let what = "an unreadable job could not be marked as failed";
        self.work_pool.run(what, &self.texts.fail_job, &params).await?;
        Ok(())
    }
}

/// Which jobs a statement names in its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Those that were held.
    Held,
    /// Those that were not.
    Lost,
}

/// Runs a statement on the jobs of each number, all in one round trip, and returns those that were not held.
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
    let connection = pool.get().await?;
    let found = connection.run_all(what, &statements).await?;
    connection.give_back();
    let mut named = BTreeSet::new();
    for (rows, number) in found.iter().zip(numbers.keys()) {
        for row in rows {
            named.insert((column::<i64>(what, row, 0)?, *number));
        }
    }
    let is_lost = |claim: &&Claim| named.contains(&(claim.seq, claim.number)) == (answer == Answer::Lost);
    Ok(claims.iter().filter(is_lost).copied().collect())
}
