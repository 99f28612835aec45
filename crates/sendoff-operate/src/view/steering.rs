//! Keys, lanes, pauses, clean-ups and the audit.

use sendoff::Uuid;
use sendoff::envelope::rfc3339;
use sendoff::store;
use serde::Serialize;

/// A blocked key at a sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyView {
    /// The blocked key.
    pub key: String,
    /// The sink at which the key is blocked.
    pub sink: String,
    /// The lane of the key.
    pub lane: i64,
    /// The number of messages blocked behind the failed one.
    pub blocked: u64,
    /// The id of the failed message that blocks the others.
    pub head: Option<Uuid>,
    /// The state of the message that blocks the others: `retry`, `deferred` or `dead`.
    pub state: String,
    /// When the message that blocks the others is tried again.
    pub due_at: Option<String>,
    /// The last error of the message that blocks the others.
    pub last_error: Option<String>,
}

impl From<store::KeyView> for KeyView {
    fn from(view: store::KeyView) -> Self {
        let store::KeyView {
            key,
            sink,
            lane,
            blocked,
            head,
            state,
            due_at,
            last_error,
        } = view;
        Self {
            key,
            sink,
            lane,
            blocked,
            head,
            state,
            due_at: due_at.map(rfc3339),
            last_error,
        }
    }
}

/// A lane and the relay that holds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneView {
    /// The number of the lane.
    pub lane: i64,
    /// The name of the relay that holds the lane.
    pub relay: Option<String>,
    /// The id of the relay that holds the lane.
    pub owner: Option<Uuid>,
    /// When the lease on the lane expires, unless it is renewed.
    pub until: Option<String>,
    /// How often the lane changed its owner.
    pub epoch: i64,
    /// How many owners of the lane crashed in a row.
    pub crashes: i64,
    /// The number of ready messages in the lane.
    pub ready: u64,
}

impl From<store::LaneView> for LaneView {
    fn from(view: store::LaneView) -> Self {
        let store::LaneView {
            lane,
            epoch,
            owner,
            relay,
            until,
            crashes,
            ready,
        } = view;
        Self {
            lane,
            relay,
            owner,
            until: until.map(rfc3339),
            epoch,
            crashes,
            ready,
        }
    }
}

/// A paused topic or sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PauseView {
    /// What is paused: `topic` or `sink`.
    pub kind: &'static str,
    /// The name of the paused topic or sink.
    pub name: String,
    /// When the pause began.
    pub since: String,
    /// The operator who began the pause.
    pub by: String,
}

impl From<store::PauseView> for PauseView {
    fn from(view: store::PauseView) -> Self {
        let (kind, name) = view.what.kind_and_name();
        Self {
            kind,
            name: name.to_owned(),
            since: rfc3339(view.since),
            by: view.by,
        }
    }
}

/// The result of a clean-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CleanView {
    /// The number of deleted rows.
    pub deleted: u64,
    /// The number of remaining rows of the selected kinds: younger than their retention, or blocking a key.
    pub remaining: u64,
}

/// The result of reaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReapView {
    /// The number of freed lanes, whose relay's lease had expired.
    pub lanes_freed: u64,
    /// The number of reaped jobs, whose worker had not renewed its lease in time.
    pub jobs_reaped: u64,
}

impl From<store::Reaped> for ReapView {
    fn from(reaped: store::Reaped) -> Self {
        Self {
            lanes_freed: reaped.lanes,
            jobs_reaped: reaped.jobs,
        }
    }
}

/// One entry of the audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditView {
    /// When the action took place.
    pub at: String,
    /// The database login that took the action. `None` if the database has no logins.
    pub login: Option<String>,
    /// The name of the operator, as given by the operator.
    pub who: String,
    /// What was done, such as `dead retry` or `pause`.
    pub action: String,
    /// The filter that selected the messages.
    pub filter: serde_json::Value,
    /// The number of changed rows.
    pub affected: u64,
}

impl From<store::AuditView> for AuditView {
    fn from(view: store::AuditView) -> Self {
        let filter = serde_json::from_str(&view.filter).unwrap_or(serde_json::Value::String(view.filter));
        Self {
            at: rfc3339(view.at),
            login: view.login,
            who: view.who,
            action: view.action,
            filter,
            affected: view.affected,
        }
    }
}
