//! Rows as an operator sees them.

use std::time::SystemTime;

use sendoff::envelope::rfc3339;
use sendoff::store::{RowId, RowRef, Status, Stored};
use serde_json::json;

use crate::content::{Content, time};

/// The number in a member.
pub(crate) fn seq_of(member: &str) -> i64 {
    member
        .get(..19)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_default()
}

/// The sink in a member; empty before it is routed.
pub(crate) fn delivery_of(member: &str) -> &str {
    member.get(57..).unwrap_or_default()
}

/// The id in a member.
pub(crate) fn id_of(member: &str) -> RowId {
    RowId::from_text(member.get(20..56).unwrap_or_default().as_bytes())
}

/// The member of a row.
pub(crate) fn member_of(row_ref: &RowRef) -> String {
    let sink = row_ref.sink.as_deref().unwrap_or_default();
    format!("{:019}:{}:{sink}", row_ref.seq, row_ref.id.uuid())
}

/// A row as the script returns it: table, lane, member, content, state, due, attempts, error, ended, whether it
/// blocks its key, and its failed attempts.
pub(crate) type Answer = (
    String,
    i64,
    String,
    Option<Vec<u8>>,
    Option<String>,
    Option<i64>,
    i64,
    Option<String>,
    Option<f64>,
    u8,
    Vec<String>,
);

/// A row.
pub(crate) struct Found {
    pub(crate) stored: Stored,
    pub(crate) member: String,
    /// Whether it is a dead letter that blocks its key.
    pub(crate) blocks: bool,
    pub(crate) is_waiting: bool,
}

impl Found {
    pub(crate) fn of(answer: Answer) -> Self {
        let (table, lane, member, content, state, due, attempts, error, ended, blocks, tried) = answer;
        let content = Content::read(&content.unwrap_or_default()).ok();
        let status = match table.as_str() {
            "dead" => Status::Dead,
            "delivered" => Status::Delivered,
            "waiting" if state.as_deref() == Some("scheduled") => Status::Scheduled,
            "waiting" if state.as_deref() == Some("deferred") => Status::Deferred,
            "waiting" if state.as_deref() == Some("blocked") && due.is_none() => Status::Blocked,
            _ if attempts > 0 => Status::Retry,
            _ => Status::Pending,
        };
        let history = (table != "ready").then(|| history(&tried));
        let of = |part: fn(&Content) -> &Option<String>| content.as_ref().and_then(|content| part(content).clone());
        let stored = Stored {
            status,
            id: content.as_ref().map(|content| content.id),
            topic: content
                .as_ref()
                .map_or_else(String::new, |content| content.topic.clone()),
            sink: delivery_of(&member).to_owned(),
            key: of(|content| &content.key),
            lane,
            seq: seq_of(&member),
            aggregate_type: of(|content| &content.aggregate_type),
            aggregate_id: of(|content| &content.aggregate_id),
            schema_version: content
                .as_ref()
                .and_then(|content| content.schema_version)
                .map(i64::from),
            idempotency_key: of(|content| &content.idempotency_key),
            content_type: of(|content| &content.content_type),
            headers: of(|content| &content.headers),
            headers_cut: false,
            priority: content.as_ref().map_or(0, |content| i64::from(content.priority)),
            attempts,
            max_attempts: content.as_ref().and_then(|content| content.max_attempts).map(i64::from),
            last_error: error,
            detail: state,
            history,
            created_at: content
                .as_ref()
                .map_or(SystemTime::UNIX_EPOCH, |content| time(content.created_at)),
            due_at: due.map(time),
            expires_at: content.as_ref().and_then(|content| content.expires_at).map(time),
            // A score is a floating-point number; it is exact for these values.
            ended_at: ended.map(|at| time(at as i64)),
            payload_bytes: content.as_ref().map_or(0, |content| content.payload.len() as u64),
            payload: content.map_or_else(Vec::new, |content| content.payload),
        };
        Self {
            stored,
            member,
            blocks: blocks == 1,
            is_waiting: table == "waiting",
        }
    }

    /// Its lane and member, as the script expects them.
    pub(crate) fn row_ref(&self) -> (i64, &str) {
        (self.stored.lane, &self.member)
    }
}

fn history(tried: &[String]) -> String {
    let entries = tried.chunks_exact(3).map(|entry| {
        let at = entry[0].parse().map_or(SystemTime::UNIX_EPOCH, time);
        json!({"at": rfc3339(at), "sink": entry[1], "error": entry[2]})
    });
    serde_json::Value::from_iter(entries).to_string()
}
