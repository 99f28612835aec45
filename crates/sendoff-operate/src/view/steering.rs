//! Keys, lanes, pauses, clean-ups and the audit.

use sendoff::Uuid;
use sendoff::envelope::rfc3339;
use sendoff::store;
use serde::Serialize;

/// A key whose messages wait for a sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyView {
    /// The key.
    pub key: String,
    /// The sink.
    pub leg: String,
    /// Its lane.
    pub lane: i64,
    /// Messages that wait behind the first.
    pub held: u64,
    /// The message that they wait for.
    pub head: Option<Uuid>,
    /// Its state: `retry`, `down`, or `dead`.
    pub state: String,
    /// When it is tried again.
    pub due_at: Option<String>,
    /// What went wrong with it.
    pub last_error: Option<String>,
}

impl From<store::KeyView> for KeyView {
    fn from(view: store::KeyView) -> Self {
        let store::KeyView {
            key,
            leg,
            lane,
            held,
            head,
            state,
            due_at,
            last_error,
        } = view;
        Self {
            key,
            leg,
            lane,
            held,
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
    /// What people call the relay that holds it.
    pub relay: Option<String>,
    /// That relay's id.
    pub owner: Option<Uuid>,
    /// Until when its lease holds, unless renewed.
    pub until: Option<String>,
    /// How often it changed hands.
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

/// What a clean-up did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CleanView {
    /// Rows that are gone.
    pub deleted: u64,
    /// Rows of the kinds that were named that are still there: younger than their window, or in the way of a key.
    pub remaining: u64,
}

/// What was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReapView {
    /// Lanes of relays whose lease has run out.
    pub lanes_freed: u64,
    /// Items of workers that have not renewed them for long.
    pub items_reaped: u64,
}

impl From<store::Reaped> for ReapView {
    fn from(reaped: store::Reaped) -> Self {
        Self {
            lanes_freed: reaped.lanes,
            items_reaped: reaped.items,
        }
    }
}

/// What an operator did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditView {
    /// When.
    pub at: String,
    /// Who.
    pub who: String,
    /// What.
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
            who: view.who,
            action: view.action,
            filter,
            affected: view.affected,
        }
    }
}
