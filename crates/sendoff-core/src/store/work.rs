//! The store for workers: jobs that the application's own workers claim and finish, with a lease per row.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::{Claim, Command, EmitTransaction, Filter, Job, JobCounts, JobState, StoredJob};
use crate::{Error, ErrorKind, Result};

/// The most payload bytes per claim, plus one job.
pub const CLAIM_BYTES: usize = 32 << 20;

/// What workers need from a store. An [`crate::Outbox`] [for jobs](crate::emit::OutboxBuilder::jobs) writes them, in
/// the same transaction as the application's own rows.
///
/// # States
/// `pending → running → (gone, or completed)`, `running → retry → running`, `running → failed`. An operator retries
/// failed jobs with [`retry_failed`](WorkStore::retry_failed).
///
/// # Duties, for all methods
/// - Time is the database's clock; a host's clock decides nothing.
/// - No transaction stays open after a method returns; everything works through a pooler.
/// - No other worker gets a job while a lease on it is valid.
/// - A worker can change a job only while the job is *held*: it is running, its lease owner is this worker, its number
///   is that of the claim, and its lease has not run out. A job that is not held is not changed.
/// - Every claim of a job has a new number, so that a worker cannot act on its own earlier claim.
#[async_trait]
pub trait WorkStore: Send + Sync + 'static {
    /// Begins a transaction of the store that emits jobs. Applications emit in their own transactions instead.
    ///
    /// # Errors
    /// As [`EmitStore::begin`](super::EmitStore::begin).
    async fn begin_jobs(&self) -> Result<Box<dyn EmitTransaction>>;

    /// Claims up to `limit` jobs of any topic; see [`claim_topics`](WorkStore::claim_topics).
    ///
    /// # Errors
    /// As [`claim_topics`](WorkStore::claim_topics).
    async fn claim_batch(&self, worker: &str, limit: usize, lease: Duration) -> Result<Vec<Job>> {
        self.claim_topics(worker, &[], limit, lease).await
    }

    /// Claims up to `limit` jobs, and at most [`CLAIM_BYTES`] of payload plus one job: only jobs with one of these topics,
    /// or of any topic if the list is empty. Topics are compared byte by byte; they are no patterns.
    ///
    /// Jobs with the earliest next attempt come first, then in the order of emission. They are leased to `worker` for
    /// `lease`. Each is charged an attempt now, so that a job that kills its workers fails in the end.
    ///
    /// Jobs whose lease has run out are claimed like others. Jobs that have no attempt left, are expired or are
    /// unreadable become failed instead, with the reason, and are not returned. Jobs of other topics are not changed.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an invalid name of the worker; errors of the database.
    async fn claim_topics(&self, worker: &str, topics: &[String], limit: usize, lease: Duration) -> Result<Vec<Job>>;

    /// Renews the lease on held jobs for `lease` from now. Returns those that were not held.
    ///
    /// # Errors
    /// Errors of the database.
    async fn extend(&self, worker: &str, claims: &[Claim], lease: Duration) -> Result<Vec<Claim>>;

    /// Releases held jobs without running them: due now; the attempt is not charged. Returns those that were not held.
    ///
    /// # Errors
    /// Errors of the database.
    async fn release(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>>;

    /// Marks held jobs as done: deleted, or completed if the store has a retention. Returns those that were not held.
    ///
    /// If the server loses the commit in a crash, the jobs only run again, so the commit need not be durable.
    ///
    /// # Errors
    /// Errors of the database; then it is unknown which of them are done.
    async fn mark_success(&self, worker: &str, claims: &[Claim]) -> Result<Vec<Claim>>;

    /// Marks a held job as failed: due again after `delay`, or failed permanently if no attempt is left. Returns its
    /// new state.
    ///
    /// # Errors
    /// [`ErrorKind::LeaseLost`] when it is not held; errors of the database.
    async fn mark_retry(&self, worker: &str, claim: Claim, delay: Duration, error: &str) -> Result<JobState>;

    /// Marks a held job as failed permanently.
    ///
    /// # Errors
    /// [`ErrorKind::LeaseLost`] when it is not held; errors of the database.
    async fn mark_failed(&self, worker: &str, claim: Claim, error: &str) -> Result<()>;

    /// Reaps running jobs whose lease expired at least `stale_after` ago and that no worker has claimed since: due now,
    /// or failed if no attempt is left. Jobs with a valid lease are not changed. Returns the number of reaped jobs.
    ///
    /// # Errors
    /// Errors of the database.
    async fn reap(&self, stale_after: Duration) -> Result<u64>;

    /// The number of jobs in each state.
    ///
    /// # Errors
    /// Errors of the database.
    async fn job_counts(&self) -> Result<JobCounts>;

    /// Retries up to `limit` failed jobs, oldest first, or those of `ids` if it is not empty: due now; attempts reset
    /// to 0. The audit records `asked`, the filter that selected the ids. Returns how many.
    ///
    /// # Errors
    /// Errors of the database.
    async fn retry_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64>;

    /// Up to `limit` jobs in the order of emission: those with a number above `after`, in `state` if it is set, of `ids` if
    /// it is not empty, and with `payload` in their payload if it is set; the database searches the whole payload. Long
    /// values are cut as in [`OperateStore::list`](super::OperateStore::list).
    ///
    /// # Errors
    /// Errors of the database.
    async fn jobs(
        &self,
        state: Option<JobState>,
        ids: &[Uuid],
        payload: Option<&str>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredJob>>;

    /// One job, cut as in [`OperateStore::find`](super::OperateStore::find).
    ///
    /// # Errors
    /// Errors of the database.
    async fn find_job(&self, id: Uuid) -> Result<Option<StoredJob>>;

    /// Deletes up to `limit` failed jobs permanently, oldest first, or those of `ids` if it is not empty. The audit
    /// records `asked`, the filter that selected the ids. Returns the number of deleted jobs.
    ///
    /// # Errors
    /// Errors of the database.
    async fn discard_failed(&self, ids: &[Uuid], limit: usize, asked: &Filter, command: &mut Command) -> Result<u64>;
}

/// The SQL text of a list of jobs, with `{bytes}` and `{headers}` replaced by the limits of payload bytes and headers.
pub fn with_sizes(sql: &str, bytes: usize, headers: usize) -> String {
    sql.replace("{bytes}", &bytes.to_string())
        .replace("{headers}", &headers.to_string())
}

/// The error of a worker that acts on a job that it does not hold.
pub fn lease_lost(what: &str, worker: &str) -> Error {
    Error::new(ErrorKind::LeaseLost, what)
        .because(format!(
            "worker {worker:?} does not hold the job: the lease expired or was revoked, or the job was already marked"
        ))
        .next_step("drop the work on this job; it was not changed; use a longer lease, or extend the lease more often")
}

/// Checks the name of a worker.
///
/// # Errors
/// [`ErrorKind::Invalid`] unless it has 1 to 255 bytes and no NUL.
pub fn check_worker(worker: &str) -> Result<()> {
    if (1..=255).contains(&worker.len()) && !worker.contains('\0') {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Invalid, "the worker's name is invalid")
        .because("the name identifies the owner of a lease, and must have 1 to 255 bytes without NUL")
        .next_step("use a name that is unique for each process: host, pid and a random part"))
}

/// The error text of a failed job as a store can keep it: without NUL, and at most 4000 bytes.
pub fn error_text(error: &str) -> String {
    const MOST: usize = 4000;
    let end = (0..=MOST.min(error.len())).rev().find(|at| error.is_char_boundary(*at));
    error[..end.unwrap_or(0)].replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_cut_between_letters_and_keep_no_nul() {
        assert_eq!(error_text("a\0b"), "a\u{fffd}b");
        assert_eq!(error_text(&"ä".repeat(3000)).len(), 4000);
        assert_eq!(error_text(&format!("x{}", "ä".repeat(3000))).len(), 3999);
        assert_eq!(error_text(""), "");
    }

    #[test]
    fn a_worker_has_a_name() {
        assert!(check_worker("host-1").is_ok());
        for bad in ["", "a\0b", &"x".repeat(256)] {
            assert_eq!(check_worker(bad).map_err(|error| error.kind()), Err(ErrorKind::Invalid));
        }
    }
}
