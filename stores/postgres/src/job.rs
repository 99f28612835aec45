//! A claimed row as a job.

use std::sync::OnceLock;
use std::time::SystemTime;

use sendoff::columns::{Positions, position};
use sendoff::store::{Claim, Job};
use sendoff::{Result, Uuid};
use tokio_postgres::Row;

use crate::decode::{Source, column, names};

/// A row of `claim_jobs.sql`.
pub(crate) struct Claimed {
    pub(crate) due: SystemTime,
    pub(crate) claim: Claim,
    /// Or what keeps it from being one, in words.
    pub(crate) job: Result<Job, String>,
}

/// Where the columns of `claim_jobs.sql` are.
#[derive(Clone, Copy)]
pub(crate) struct ClaimColumns {
    is_failed: usize,
    due_at: usize,
    seq: usize,
    claim: usize,
    attempts: usize,
    job: Positions,
}

impl ClaimColumns {
    fn of(row: &Row) -> Result<Self> {
        let names = names(row);
        Ok(Self {
            is_failed: position(&names, "is_failed")?,
            due_at: position(&names, "due_at")?,
            seq: position(&names, "seq")?,
            claim: position(&names, "claim")?,
            attempts: position(&names, "attempts")?,
            job: Positions::find(&names)?,
        })
    }

    /// Looked up in the first row.
    pub(crate) fn once(columns: &OnceLock<Self>, row: &Row) -> Result<Self> {
        if let Some(columns) = columns.get() {
            return Ok(*columns);
        }
        let found = Self::of(row)?;
        Ok(*columns.get_or_init(|| found))
    }

    /// `None` for the row that tells of jobs which became failed.
    pub(crate) fn claimed(&self, what: &str, row: &Row) -> Result<Option<Claimed>> {
        if column::<bool>(what, row, self.is_failed)? {
            return Ok(None);
        }
        let claim = Claim {
            seq: column(what, row, self.seq)?,
            number: column(what, row, self.claim)?,
        };
        let id = column::<Uuid>(what, row, self.job.id)?.into();
        let attempts = [self.attempts, self.job.max_attempts];
        Ok(Some(Claimed {
            due: column(what, row, self.due_at)?,
            claim,
            job: Job::read(&Source(row), &self.job, attempts, claim, &id),
        }))
    }
}
