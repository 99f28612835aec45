//! Jobs of workers.

use std::str::FromStr;
use std::time::SystemTime;

use bytes::Bytes;
use uuid::Uuid;

use super::{RowId, Stored};
use crate::columns::{ColumnSource, Contents, Positions, Unreadable, integer};
use crate::{Error, ErrorKind, Headers, message::JSON};

/// One claim of one job: the fencing token of every mark. A later claim of the same job has another number, even by the
/// same worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim {
    /// The job's number in the table.
    pub seq: i64,
    /// The number of the claim.
    pub number: i64,
}

/// A claimed job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its claim, needed to mark it.
    pub claim: Claim,
    /// Its id: that of the emitted message.
    pub id: Uuid,
    /// Its topic.
    pub topic: String,
    /// The emitted bytes, unchanged.
    pub payload: Bytes,
    /// `None` is JSON; see [`Job::content_type`].
    pub content_type: Option<String>,
    /// Its headers.
    pub headers: Headers,
    /// Its key. It does not order jobs: jobs of one key may run at the same time.
    pub key: Option<String>,
    /// The aggregate's type, of a domain event.
    pub aggregate_type: Option<String>,
    /// The aggregate's id, of a domain event.
    pub aggregate_id: Option<String>,
    /// The version of the payload's schema.
    pub schema_version: Option<i32>,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// Its priority. It does not order jobs.
    pub priority: i16,
    /// When its transaction began, by the database's clock.
    pub created_at: SystemTime,
    /// It cannot be claimed after this time.
    pub expires_at: Option<SystemTime>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
}

impl Job {
    /// Reads the job of a row, whose columns are [at these positions](Positions::find); `attempt` and `max_attempts` are
    /// those of this claim. A payload that is NULL was left out, and is read later.
    ///
    /// # Errors
    /// In words, what keeps the row from being a job.
    pub fn read(
        row: &impl ColumnSource,
        at: &Positions,
        [attempt, max_attempts]: [usize; 2],
        claim: Claim,
        id: &RowId,
    ) -> Result<Self, Unreadable> {
        let contents = Contents::read(row, at)?;
        Ok(Self {
            claim,
            id: id.parse()?,
            topic: contents.topic,
            payload: contents.payload.unwrap_or_default(),
            content_type: contents.content_type,
            headers: contents.headers,
            key: contents.key,
            aggregate_type: contents.aggregate_type,
            aggregate_id: contents.aggregate_id,
            schema_version: contents.schema_version,
            idempotency_key: contents.idempotency_key,
            priority: contents.priority,
            created_at: contents.created_at,
            expires_at: contents.expires_at,
            attempt: integer(row, attempt, "attempts", 1, i32::MAX.into())?.unwrap_or(1),
            max_attempts: integer(row, max_attempts, "max_attempts", 1, i32::MAX.into())?.unwrap_or(1),
        })
    }

    /// The content type of the payload.
    pub fn content_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or(JSON)
    }
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum JobState {
    /// Never claimed, or released.
    Pending,
    /// A worker holds it.
    Running,
    /// It failed, and can be claimed again when it is due.
    Retry,
    /// Done, and kept by retention.
    Completed,
    /// Given up; an operator can retry it.
    Failed,
}

impl JobState {
    /// The name in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Retry => "retry",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

impl FromStr for JobState {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let states = [Self::Pending, Self::Running, Self::Retry, Self::Completed, Self::Failed];
        let found = states.into_iter().find(|state| state.as_str() == word);
        found.ok_or_else(|| {
            Error::new(ErrorKind::Invalid, format!("jobs have no state {word:?}"))
                .next_step("use pending, running, retry, completed or failed")
        })
    }
}

/// A job as an operator sees it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredJob {
    /// Its state.
    pub state: JobState,
    /// The worker that holds it.
    pub lease_owner: Option<String>,
    /// The end of the worker's lease. After this, the next worker that claims gets it.
    pub lease_until: Option<SystemTime>,
    /// The job as a message without lane and sink: its detail is the name of the state, its due time that of the next
    /// attempt, and its end the time of completion.
    pub message: Stored,
}

impl StoredJob {
    /// The job of a row, whose detail is the name of its state.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when no state has that name.
    pub fn new(message: Stored, lease_owner: Option<String>, lease_until: Option<SystemTime>) -> Result<Self, Error> {
        Ok(Self {
            state: message.detail.as_deref().unwrap_or_default().parse()?,
            lease_owner,
            lease_until,
            message,
        })
    }
}

/// The number of jobs by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct JobCounts {
    /// Never claimed, or released.
    pub pending: u64,
    /// Held by workers, including jobs whose lease has run out.
    pub running: u64,
    /// Failed before.
    pub retry: u64,
    /// Done and kept.
    pub completed: u64,
    /// Given up.
    pub failed: u64,
}

impl JobCounts {
    /// Sets the number of a state, by its name. Unknown names are ignored.
    pub fn set(&mut self, state: &str, count: u64) {
        let row_ref = match state {
            "pending" => &mut self.pending,
            "running" => &mut self.running,
            "retry" => &mut self.retry,
            "completed" => &mut self.completed,
            "failed" => &mut self.failed,
            _ => return,
        };
        *row_ref = count;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.pending + self.running + self.retry + self.completed + self.failed
    }
}
