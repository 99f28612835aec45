//! Room: operate. What an operator sees and does.

use std::time::SystemTime;

use async_trait::async_trait;
use uuid::Uuid;

use super::{CleanCount, Cleaned, Command, Hasten, Hastened, Place, Reaped};
use crate::Result;

/// The status of a message, in the words that operators see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Not tried yet.
    Pending,
    /// Failed, or its sink was down, and waits to be tried again.
    Retry,
    /// Confirmed by its sink.
    Delivered,
    /// Given up; can be retried by an operator.
    Dead,
}

impl Status {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Retry => "retry",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

/// Which messages; every field that is set has to fit.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// One of these ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Uuid>,
    /// This status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// This topic; `*` stands for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// This ordering key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// This aggregate type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate_type: Option<String>,
    /// This aggregate id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate_id: Option<String>,
    /// This idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// This sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leg: Option<String>,
    /// The last error contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The payload contains these bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Created at or after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_from: Option<SystemTime>,
    /// Created before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_until: Option<SystemTime>,
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The messages, oldest first.
    pub messages: Vec<Stored>,
    /// Whether there are more behind them.
    pub more: bool,
}

/// How much of a payload comes with a list: enough to know it again.
pub const LISTED_BYTES: usize = 4 << 10;

/// How much of a payload comes with a single message: all of it, unless the limits of the tables were raised.
pub const SHOWN_BYTES: usize = 16 << 20;

/// A message, or one leg of it, as an operator sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its status.
    pub status: Status,
    /// Its id; `None` when the row's id cannot be read.
    pub id: Option<Uuid>,
    /// Its topic.
    pub topic: String,
    /// The sink; empty when it is not routed yet, or was delivered to all of its sinks at once.
    pub leg: String,
    /// Its ordering key.
    pub key: Option<String>,
    /// Its lane.
    pub lane: i64,
    /// Its number.
    pub seq: i64,
    /// The aggregate's type.
    pub aggregate_type: Option<String>,
    /// The aggregate's id.
    pub aggregate_id: Option<String>,
    /// The version of its payload's schema.
    pub schema_version: Option<i64>,
    /// Its idempotency key.
    pub idempotency_key: Option<String>,
    /// Its content type; `None` is JSON.
    pub content_type: Option<String>,
    /// Its headers, as the JSON text in the table.
    pub headers: Option<String>,
    /// Its payload, or the beginning of a longer one: [`LISTED_BYTES`] in a list, [`SHOWN_BYTES`] of a single message. In a list,
    /// headers that are longer are left out.
    pub payload: Vec<u8>,
    /// How long its payload is.
    pub payload_bytes: u64,
    /// Its priority.
    pub priority: i64,
    /// Failed attempts.
    pub attempts: i64,
    /// Its own limit.
    pub max_attempts: Option<i64>,
    /// The last error.
    pub last_error: Option<String>,
    /// The state of a waiting message or the reason of a dead one, in one word.
    pub detail: Option<String>,
    /// What was tried, oldest first, as a JSON array of `{"at", "leg", "error"}`.
    pub history: Option<String>,
    /// When it was created.
    pub created_at: SystemTime,
    /// When it is due; `None` for one that is ready, held, or ended.
    pub due_at: Option<SystemTime>,
    /// When it expires.
    pub expires_at: Option<SystemTime>,
    /// When it was delivered or died.
    pub ended_at: Option<SystemTime>,
}

impl Stored {
    /// The same with the beginning of what is longer, for a store that has read all of it.
    #[must_use]
    pub fn cut(mut self, bytes: usize) -> Self {
        self.payload.truncate(bytes);
        self.headers = self.headers.filter(|headers| headers.len() <= bytes);
        self
    }
}

/// The state of the outbox at a glance.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// Ready now.
    pub ready: u64,
    /// Waiting: scheduled, backing off, held, or for a sink that is down.
    pub waiting: u64,
    /// Of the waiting: those with failed attempts.
    pub failed: u64,
    /// Dead letters.
    pub dead: u64,
    /// Delivered messages that are kept.
    pub delivered: u64,
    /// How long the oldest ready message has been there.
    pub oldest_ready: Option<std::time::Duration>,
    /// How long the oldest message that never failed has been there: ready or waiting, but not one whose time has not come.
    pub oldest_pending: Option<std::time::Duration>,
}

/// What operators ask of a store. Every change is one transaction, which also writes it into the audit: who, the word of its
/// [`Action`](super::Action), what was asked for, and how many.
#[async_trait]
pub trait OperateStore: Send + Sync {
    /// Messages that fit, oldest first by their creation; `offset` of them are passed over.
    ///
    /// # Errors
    /// What the database says.
    async fn list(&self, filter: &Filter, limit: usize, offset: usize) -> Result<Listing>;

    /// All legs of one message.
    ///
    /// # Errors
    /// What the database says; an unknown id gives an empty list.
    async fn find(&self, id: Uuid) -> Result<Vec<Stored>>;

    /// The state at a glance.
    ///
    /// # Errors
    /// What the database says.
    async fn summary(&self) -> Result<Summary>;

    /// What time it is by the database's clock.
    ///
    /// # Errors
    /// What the database says.
    async fn now(&self) -> Result<SystemTime>;

    /// Brings up to `limit` dead letters that fit back, the first of each lane first: due at once, no attempts charged, in
    /// their original order per key. A letter that never was routed is routed anew, and one that has expired loses its date.
    /// Returns how many.
    ///
    /// With `until`, only letters that were dead by [then](OperateStore::now): whoever brings back all of them, batch after
    /// batch, does not meet those again that die again meanwhile.
    ///
    /// # Errors
    /// What the database says.
    async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64>;

    /// How many messages fit.
    ///
    /// # Errors
    /// What the database says.
    async fn count(&self, filter: &Filter) -> Result<u64> {
        let _ = filter;
        Err(unsupported("counting by a filter"))
    }

    /// Makes up to `limit` waiting messages that fit due at once, in the order of lane, number and leg: those that failed,
    /// that are parked, or whose sink is down, and scheduled ones if `how` says so. Held ones stay held: order is not given
    /// up. What is due already is left alone, unless it is reset. It begins behind the place `after`, so that a message
    /// which fails again in the meantime is not met twice.
    ///
    /// # Errors
    /// What the database says.
    async fn hasten(
        &self,
        filter: &Filter,
        how: Hasten,
        after: Option<&Place>,
        limit: usize,
        command: &mut Command,
    ) -> Result<Hastened> {
        let _ = (filter, how, after, limit, command);
        Err(unsupported("making messages due"))
    }

    /// How many messages [`hasten`](OperateStore::hasten) would make due or reset.
    ///
    /// # Errors
    /// What the database says.
    async fn hasten_count(&self, filter: &Filter, how: Hasten) -> Result<u64> {
        let _ = (filter, how);
        Err(unsupported("counting what can be made due"))
    }

    /// Deletes up to `limit` dead letters that fit, oldest first. Followers of those that blocked their key are let go.
    /// `until` is as for [`OperateStore::retry_dead`]. Returns how many.
    ///
    /// # Errors
    /// What the database says.
    async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let _ = (filter, until, limit, command);
        Err(unsupported("discarding dead letters"))
    }

    /// Keys whose messages wait behind another, those with the most held messages first.
    ///
    /// # Errors
    /// What the database says.
    async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        let _ = limit;
        Err(unsupported("listing keys"))
    }

    /// Lets a key go on: its dead letters stay dead and block no more, and its followers become due. `leg` limits it to
    /// one sink. Returns how many dead letters blocked it.
    ///
    /// # Errors
    /// What the database says.
    async fn release_key(&self, key: &str, leg: Option<&str>, who: &str) -> Result<u64> {
        let _ = (key, leg, who);
        Err(unsupported("releasing keys"))
    }

    /// All lanes, who holds them, and how much is in them.
    ///
    /// # Errors
    /// What the database says.
    async fn lane_views(&self) -> Result<Vec<LaneView>> {
        Err(unsupported("listing lanes"))
    }

    /// Pauses a topic or a sink. Returns whether it was not paused before.
    ///
    /// # Errors
    /// What the database says.
    async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        let _ = (what, who);
        Err(unsupported("pausing"))
    }

    /// Ends a pause. Returns whether there was one.
    ///
    /// # Errors
    /// What the database says.
    async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let _ = (what, who);
        Err(unsupported("resuming"))
    }

    /// What is paused, since when and by whom.
    ///
    /// # Errors
    /// What the database says.
    async fn pauses(&self) -> Result<Vec<PauseView>> {
        Err(unsupported("listing pauses"))
    }

    /// Frees the lanes of relays whose lease has run out, and takes items from workers that have not claimed or extended them
    /// for as long as `stale_after`, as [`RelayStore::evict`](super::RelayStore::evict) and
    /// [`WorkStore::reap`](super::WorkStore::reap) do.
    ///
    /// # Errors
    /// What the database says.
    async fn reap_gone(&self, stale_after: std::time::Duration, who: &str) -> Result<Reaped> {
        let _ = (stale_after, who);
        Err(unsupported("reaping"))
    }

    /// How much is older than the windows, and how much there is of the kinds that they name. May be slow: everything is
    /// counted.
    ///
    /// # Errors
    /// What the database says.
    async fn clean_count(&self, windows: &Windows) -> Result<CleanCount> {
        let _ = windows;
        Err(unsupported("counting what is old"))
    }

    /// Deletes some of what is older than the windows: up to `limit` rows, or a whole day of delivered messages where a store
    /// keeps days apart.
    ///
    /// # Errors
    /// What the database says.
    async fn clean_up(&self, windows: &Windows, limit: usize, command: &mut Command) -> Result<Cleaned> {
        let _ = (windows, limit, command);
        Err(unsupported("cleaning up"))
    }

    /// The newest audit rows first.
    ///
    /// # Errors
    /// What the database says.
    async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        let _ = limit;
        Err(unsupported("the audit"))
    }
}

fn unsupported(what: &str) -> crate::Error {
    crate::Error::new(
        crate::ErrorKind::Unsupported,
        format!("{what} is not offered by this store"),
    )
}

/// A key whose messages wait for a sink.
#[derive(Debug, Clone, PartialEq)]
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
    pub due_at: Option<SystemTime>,
    /// What went wrong with it.
    pub last_error: Option<String>,
}

/// A lane and its owner.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneView {
    /// Its number.
    pub lane: i64,
    /// How often it changed hands.
    pub epoch: i64,
    /// The relay that holds it.
    pub owner: Option<Uuid>,
    /// What people call that relay.
    pub relay: Option<String>,
    /// Until when its lease holds, unless renewed.
    pub until: Option<SystemTime>,
    /// Crashes of owners in a row.
    pub crashes: i64,
    /// Ready messages in it.
    pub ready: u64,
}

/// What can be paused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pausable {
    /// A topic: its messages wait.
    Topic(String),
    /// A sink: nothing is handed to it.
    Sink(String),
}

impl Pausable {
    /// The word for its kind, and its name.
    pub fn kind_and_name(&self) -> (&'static str, &str) {
        match self {
            Self::Topic(name) => ("topic", name),
            Self::Sink(name) => ("sink", name),
        }
    }
}

/// A pause.
#[derive(Debug, Clone, PartialEq)]
pub struct PauseView {
    /// What is paused.
    pub what: Pausable,
    /// Since when.
    pub since: SystemTime,
    /// By whom.
    pub by: String,
}

/// What is old enough to go; `None` keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Windows {
    /// Delivered messages, by when they were delivered.
    pub delivered: Option<std::time::Duration>,
    /// Dead letters, by when they died. Those that block a key are kept.
    pub dead: Option<std::time::Duration>,
    /// Whether idempotency keys whose window has passed go.
    pub dedup: bool,
    /// Notes of consumers, by when they handled a message.
    pub inbox: Option<std::time::Duration>,
}

impl Windows {
    /// What was asked for, as JSON for the audit.
    pub fn asked(&self) -> serde_json::Value {
        let seconds = |window: Option<std::time::Duration>| window.map(|window| window.as_secs_f64());
        serde_json::json!({
            "delivered_seconds": seconds(self.delivered),
            "dead_seconds": seconds(self.dead),
            "dedup": self.dedup,
            "inbox_seconds": seconds(self.inbox),
        })
    }
}

/// What an operator did.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditView {
    /// When.
    pub at: SystemTime,
    /// Who.
    pub who: String,
    /// What.
    pub action: String,
    /// On which messages, as JSON.
    pub filter: String,
    /// How many.
    pub affected: u64,
}
