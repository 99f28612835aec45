//! Keys, lanes, pauses, clean-ups and the audit.

use sendoff::Uuid;
use sendoff::envelope::rfc3339;
use sendoff::store;
use serde::Serialize;

/// A blocked key at a sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyView {
    /// The key.
    pub key: String,
    /// The sink.
    pub sink: String,
    /// Its lane.
    pub lane: i64,
    /// Messages that are blocked behind the head.
    pub blocked: u64,
    /// The head: the message that they wait for.
    pub head: Option<Uuid>,
    /// Its state: `retry`, `deferred` or `dead`.
    pub state: String,
    /// When it is tried again.
    pub due_at: Option<String>,
    /// Its last error.
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

/// A lane and its owner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneView {
    /// Its number.
    pub lane: i64,
    /// The name of the relay that holds it.
    pub relay: Option<String>,
    /// That relay's id.
    pub owner: Option<Uuid>,
    /// When its lease expires, unless renewed.
    pub until: Option<String>,
    /// How often it changed its owner.
    pub epoch: i64,
    /// Crashes of owners in a row.
    pub crashes: i64,
    /// Ready messages in it.
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

/// A pause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PauseView {
    /// `topic` or `sink`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Since when.
    pub since: String,
    /// By whom.
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
    /// Deleted rows.
    pub deleted: u64,
    /// Remaining rows of the selected kinds: younger than their retention, or blocking a key.
    pub remaining: u64,
}

/// The result of freeing stale lanes and jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReapView {
    /// Lanes of relays whose lease has expired.
    pub lanes_freed: u64,
    /// Jobs that their workers have not renewed in time.
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
    /// When.
    pub at: String,
    /// The login at the database. `None` if the database has none.
    pub login: Option<String>,
    /// Who, as given by the operator.
    pub who: String,
    /// The action.
    pub action: String,
    /// On which messages.
    pub filter: serde_json::Value,
    /// How many.
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
