//! A row that is due as a job.

use rusqlite::{Row, Statement};
use sendoff::Uuid;
use sendoff::columns::{Positions, position};
use sendoff::store::{Claim, Job};

use crate::decode::{Source, missing};
use crate::row_id;

/// A row of `claim_jobs.sql`.
pub(crate) struct Due {
    pub(crate) seq: i64,
    /// The number that it has before it is handed out.
    pub(crate) had: i64,
    /// The number that it gets.
    pub(crate) number: i64,
    /// Or why it has to be given up.
    pub(crate) job: Result<Job, String>,
}

/// Where the columns of `claim_jobs.sql` are.
pub(crate) struct DueColumns {
    seq: usize,
    claim: usize,
    attempts: [usize; 2],
    refused: usize,
    job: Positions,
}

impl DueColumns {
    pub(crate) fn of(statement: &Statement<'_>) -> rusqlite::Result<Self> {
        let names = statement.column_names();
        let find = |name| position(&names, name).map_err(missing);
        Ok(Self {
            seq: find("seq")?,
            claim: find("claim")?,
            attempts: [find("attempt")?, find("most_attempts")?],
            refused: find("refused")?,
            job: Positions::find(&names).map_err(missing)?,
        })
    }

    pub(crate) fn due(&self, row: &Row<'_>) -> rusqlite::Result<Due> {
        let (seq, had) = (row.get(self.seq)?, row.get(self.claim)?);
        let number = claim_number();
        let id = row_id::read(row.get_ref(self.job.id)?);
        let job = match row.get::<_, Option<String>>(self.refused)? {
            Some(why) => Err(why),
            None => Job::read(&Source(row), &self.job, self.attempts, Claim { seq, number }, &id)
                .map_err(|why| format!("the row is unreadable: {why}")),
        };
        Ok(Due { seq, had, number, job })
    }
}

/// A number that no other claim has, not even one of a history that a restored backup has ended: 63 random bits.
fn claim_number() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // The two highest bits of the lower half say which kind of UUID it is.
    let bits = low & (u64::MAX >> 2) | (high & 1) << 62;
    i64::try_from(bits).unwrap_or(i64::MAX).max(1)
}
