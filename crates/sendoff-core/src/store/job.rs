//! Jobs of workers.

use std::str::FromStr;
use std::time::SystemTime;

use bytes::Bytes;
use uuid::Uuid;

use super::{RowId, Stored};
use crate::columns::{ColumnSource, Contents, Positions, Unreadable, integer};
use crate::{Error, ErrorKind, Headers, message::JSON};

/// One claim of one job. A worker needs it to mark the job, and a mark with an older claim is rejected. A later claim
/// of the same job has another number, even by the same worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim {
    /// The job's number in the table.
    pub seq: i64,
    /// The claim's fencing token: a later claim of this job has another number.
    pub number: i64,
}

/// A claimed job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The job's claim, needed to mark the job.
    pub claim: Claim,
    /// The job's id: the id of the emitted message.
    pub id: Uuid,
    /// The job's topic.
    pub topic: String,
    /// The emitted bytes, unchanged.
    pub payload: Bytes,
    /// The payload's content type; `None` is JSON. See [`Job::content_type`].
    pub content_type: Option<String>,
    /// The job's headers.
    pub headers: Headers,
    /// The job's key. It does not order jobs: jobs with the same key may run at the same time.
    pub key: Option<String>,
    /// The type of the event's aggregate. `None` unless an event was emitted.
    pub aggregate_type: Option<String>,
    /// The id of the event's aggregate. `None` unless an event was emitted.
    pub aggregate_id: Option<String>,
    /// The version of the payload's schema.
    pub schema_version: Option<i32>,
    /// The job's idempotency key.
    pub idempotency_key: Option<String>,
    /// The job's priority. It does not order jobs.
    pub priority: i16,
    /// When the emitting transaction began, by the database's clock.
    pub created_at: SystemTime,
    /// The job cannot be claimed after this time.
    pub expires_at: Option<SystemTime>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The maximum number of attempts of the job.
    pub max_attempts: u32,
}

impl Job {
    /// Reads a job from a row; [`Positions::find`] finds the positions of the columns. `attempt` and `max_attempts` are
    /// those of this claim. A NULL payload was left out of the query and is read later.
    ///
    /// # Errors
    /// A text that says why the row is not a valid job.
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
    /// The job was never claimed, or it was released.
    Pending,
    /// A worker holds the job.
    Running,
    /// The job failed, and can be claimed again when it is due.
    Retry,
    /// The job is done, and is kept for the retention.
    Completed,
    /// The job failed and is not tried again; an operator can retry it.
    Failed,
}

impl JobState {
    /// The name of the state in the table.
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
            Error::new(ErrorKind::Invalid, format!("unknown job state {word:?}"))
                .next_step("use pending, running, retry, completed or failed")
        })
    }
}

/// A job as an operator sees it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredJob {
    /// The job's state.
    pub state: JobState,
    /// The worker that holds the job.
    pub lease_owner: Option<String>,
    /// The end of the worker's lease. After this time, another worker can claim the job.
    pub lease_until: Option<SystemTime>,
    /// The job as a message without lane and sink. Its detail is the name of the state, its due time is the time of the
    /// next attempt, and its end is the time of completion.
    pub message: Stored,
}

impl StoredJob {
    /// The job of a row. The detail in the row is the name of the job's state.
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

/// The number of jobs in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct JobCounts {
    /// Number of jobs that were never claimed, or were released.
    pub pending: u64,
    /// Number of jobs that workers hold, including jobs whose lease has expired.
    pub running: u64,
    /// Number of jobs that failed before and will be tried again.
    pub retry: u64,
    /// Number of jobs that are done and kept.
    pub completed: u64,
    /// Number of jobs that failed and are not tried again.
    pub failed: u64,
}

impl JobCounts {
    /// Sets the number of jobs in the state `state`. Unknown names are ignored.
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

    /// The number of jobs in all states together.
    pub fn total(&self) -> u64 {
        self.pending + self.running + self.retry + self.completed + self.failed
    }
}
