//! All rows, as an operator sees them.

use std::time::SystemTime;

use sendoff::envelope::rfc3339;
use sendoff::store::{Filter, Place, RowId, Status, Stored};
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
pub(crate) fn leg_of(member: &str) -> &str {
    member.get(57..).unwrap_or_default()
}

/// The id in a member.
pub(crate) fn id_of(member: &str) -> RowId {
    RowId::from_text(member.get(20..56).unwrap_or_default().as_bytes())
}

/// The member of a row.
pub(crate) fn member_of(place: &Place) -> String {
    let leg = place.leg.as_deref().unwrap_or_default();
    format!("{:019}:{}:{leg}", place.seq, place.id.uuid())
}

/// A row as the script answers: room, lane, member, content, state, due, attempts, error, ended, whether it blocks its
/// key, and what was tried.
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
    /// Whether it is a dead letter for which others of its key wait.
    pub(crate) blocks: bool,
    pub(crate) is_waiting: bool,
}

impl Found {
    pub(crate) fn of(answer: Answer) -> Self {
        let (room, lane, member, content, state, due, attempts, error, ended, blocks, tried) = answer;
        let content = Content::read(&content.unwrap_or_default()).ok();
        let status = match room.as_str() {
            "dead" => Status::Dead,
            "delivered" => Status::Delivered,
            _ if attempts > 0 => Status::Retry,
            _ => Status::Pending,
        };
        let history = (room == "waiting" || room == "dead").then(|| history(&tried));
        let of = |part: fn(&Content) -> &Option<String>| content.as_ref().and_then(|content| part(content).clone());
        let stored = Stored {
            status,
            id: content.as_ref().map(|content| content.id),
            topic: content
                .as_ref()
                .map_or_else(String::new, |content| content.topic.clone()),
            leg: leg_of(&member).to_owned(),
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
            // A score is a number with a fraction, and exact for these.
            ended_at: ended.map(|at| time(at as i64)),
            payload_bytes: content.as_ref().map_or(0, |content| content.payload.len() as u64),
            payload: content.map_or_else(Vec::new, |content| content.payload),
        };
        Self {
            stored,
            member,
            blocks: blocks == 1,
            is_waiting: room == "waiting",
        }
    }

    /// Where it is, as the script takes it.
    pub(crate) fn place(&self) -> (i64, &str) {
        (self.stored.lane, &self.member)
    }

    /// Whether a filter leaves it in.
    pub(crate) fn fits(&self, filter: &Filter) -> bool {
        let stored = &self.stored;
        let same = |wanted: &Option<String>, value: Option<&str>| wanted.is_none() || wanted.as_deref() == value;
        let error = stored.last_error.as_deref().unwrap_or_default();
        (filter.ids.is_empty() || stored.id.is_some_and(|id| filter.ids.contains(&id)))
            && filter.status.is_none_or(|status| status == stored.status)
            && filter.topic.as_deref().is_none_or(|wanted| like(wanted, &stored.topic))
            && same(&filter.key, stored.key.as_deref())
            && same(&filter.aggregate_type, stored.aggregate_type.as_deref())
            && same(&filter.aggregate_id, stored.aggregate_id.as_deref())
            && same(&filter.idempotency_key, stored.idempotency_key.as_deref())
            && same(&filter.leg, Some(&stored.leg))
            && filter
                .error
                .as_deref()
                .is_none_or(|part| stored.last_error.is_some() && error.contains(part))
            && filter
                .payload
                .as_deref()
                .is_none_or(|part| contains(&stored.payload, part.as_bytes()))
            && filter.created_from.is_none_or(|from| stored.created_at >= from)
            && filter.created_until.is_none_or(|until| stored.created_at < until)
    }
}

fn history(tried: &[String]) -> String {
    let entries = tried.chunks_exact(3).map(|entry| {
        let at = entry[0].parse().map_or(SystemTime::UNIX_EPOCH, time);
        json!({"at": rfc3339(at), "leg": entry[1], "error": entry[2]})
    });
    serde_json::Value::from_iter(entries).to_string()
}

/// Whether a topic fits, where `*` stands for any text.
fn like(wanted: &str, topic: &str) -> bool {
    let mut parts = wanted.split('*');
    let Some(mut rest) = topic.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}
