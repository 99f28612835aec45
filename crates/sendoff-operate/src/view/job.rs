//! One job.

use sendoff::Uuid;
use sendoff::envelope::rfc3339;
use sendoff::store::{JobState, StoredJob};
use serde::Serialize;
use serde_json::Value;

use super::MessageView;

/// A job as an operator sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobView {
    /// The job's id; `None` when the row's id cannot be read.
    pub id: Option<Uuid>,
    /// The job's state.
    pub state: JobState,
    /// The job's topic.
    pub topic: String,
    /// The job's key.
    pub key: Option<String>,
    /// The type of the job's aggregate.
    pub aggregate_type: Option<String>,
    /// The id of the job's aggregate.
    pub aggregate_id: Option<String>,
    /// The job's idempotency key.
    pub idempotency_key: Option<String>,
    /// How often the job was claimed.
    pub attempts: i64,
    /// The job's own limit of attempts.
    pub max_attempts: Option<i64>,
    /// The job's last error.
    pub last_error: Option<String>,
    /// The worker that holds the job.
    pub lease_owner: Option<String>,
    /// When the job's lease ends, RFC 3339. After that, another worker can claim the job.
    pub lease_until: Option<String>,
    /// The job's number.
    pub seq: i64,
    /// When the job was created, RFC 3339.
    pub created_at: String,
    /// When the job can be claimed, RFC 3339.
    pub due_at: Option<String>,
    /// When the job was completed, RFC 3339.
    pub completed_at: Option<String>,
    /// When the job expires, RFC 3339.
    pub expires_at: Option<String>,
    /// The job's headers: an object of strings, or any other JSON that is in the table.
    pub headers: Value,
    /// Whether the headers are left out because they are too long.
    pub headers_cut: bool,
    /// The payload's content type.
    pub content_type: String,
    /// The size of the payload in bytes.
    pub payload_bytes: u64,
    /// Whether the payload is cut off.
    pub payload_cut: bool,
    /// The payload, if it is text: UTF-8 without control characters other than tabs and line breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The payload in base64, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

impl JobView {
    /// Removes the payload; its size stays.
    pub(crate) fn without_payload(mut self) -> Self {
        (self.payload, self.payload_base64) = (None, None);
        self
    }

    /// The job of a row.
    pub(crate) fn of(job: StoredJob) -> Option<Self> {
        let message = MessageView::of_deliveries(vec![job.message])?;
        let sink = message.deliveries.into_iter().next()?;
        Some(Self {
            id: message.id,
            state: job.state,
            topic: message.topic,
            key: message.key,
            aggregate_type: message.aggregate_type,
            aggregate_id: message.aggregate_id,
            idempotency_key: message.idempotency_key,
            attempts: sink.attempts,
            max_attempts: message.max_attempts,
            last_error: sink.last_error,
            lease_owner: job.lease_owner,
            lease_until: job.lease_until.map(rfc3339),
            seq: message.seq,
            created_at: message.created_at,
            due_at: sink.due_at,
            completed_at: sink.ended_at,
            expires_at: message.expires_at,
            headers: message.headers,
            headers_cut: message.headers_cut,
            content_type: message.content_type,
            payload_bytes: message.payload_bytes,
            payload_cut: message.payload_cut,
            payload: message.payload,
            payload_base64: message.payload_base64,
        })
    }
}
