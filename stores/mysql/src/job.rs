//! A row that is due as a job.

use mysql_async::{Row, Value};
use sendoff::columns::{Positions, position};
use sendoff::store::{Claim, Job};
use sendoff::{Result, Uuid};

use crate::decode::{Source, names, number, row_id, text_or_null, value};

/// A row of `claim_jobs.sql`.
pub(crate) struct Due {
    /// As it is handed out, or given up.
    pub(crate) claim: Claim,
    /// Or why it has to be given up.
    pub(crate) job: Result<Job, String>,
    /// How long its payload is.
    pub(crate) bytes: usize,
    /// Its payload was left out, because it is large.
    pub(crate) is_large: bool,
}

/// Where the columns of `claim_jobs.sql` are.
pub(crate) struct DueColumns {
    seq: usize,
    attempts: [usize; 2],
    refused: usize,
    payload_bytes: usize,
    job: Positions,
}

impl DueColumns {
    pub(crate) fn of(row: &Row) -> Result<Self> {
        let columns = row.columns_ref();
        let names = names(columns);
        Ok(Self {
            seq: position(&names, "seq")?,
            attempts: [position(&names, "attempt")?, position(&names, "most_attempts")?],
            refused: position(&names, "refused")?,
            payload_bytes: position(&names, "payload_bytes")?,
            job: Positions::find(&names)?,
        })
    }

    pub(crate) fn due(&self, what: &str, row: &Row) -> Result<Due> {
        let claim = Claim {
            seq: number(what, row, self.seq)?,
            number: drawn(),
        };
        let id = row_id(what, row, self.job.id)?;
        let job = match text_or_null(what, row, self.refused)? {
            Some(why) => Err(why),
            None => Job::read(&Source(row), &self.job, self.attempts, claim, &id)
                .map_err(|why| format!("the row is unreadable: {why}")),
        };
        let bytes = usize::try_from(number(what, row, self.payload_bytes)?).unwrap_or_default();
        Ok(Due {
            claim,
            job,
            bytes,
            is_large: bytes > 0 && *value(row, self.job.payload) == Value::NULL,
        })
    }
}

/// The number of a hand-out, by lot: a counter would begin again at an old number after a failover.
fn drawn() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    i64::try_from((high ^ low) >> 1).map_or(1, |number| number.max(1))
}
