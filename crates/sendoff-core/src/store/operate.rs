//! The store for operators: what they see and do.

use std::ops::RangeInclusive;
use std::time::SystemTime;

use async_trait::async_trait;
use uuid::Uuid;

use super::list::list_order;
use super::{
    CleanCount, Cleaned, Command, Direction, EndedAt, Filter, ListTable, Listing, Looked, LookedEnded, Overview,
    Reaped, RetriedBatch, RetryOptions, RowRef, Stored, Summary,
};
use crate::Result;

/// What operators need from a store. Every change is one transaction, which also writes it to the audit: who, the name
/// of its [`Action`](super::Action), the request, and how many rows.
#[async_trait]
pub trait OperateStore: Send + Sync {
    /// The first number of a table at or after `from` in this direction; `None` when there is none. Numbers are the order of
    /// lists: a message keeps its number in every table.
    ///
    /// # Errors
    /// Errors of the database.
    async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>>;

    /// Looks at the rows of a table whose numbers are in `numbers`, and returns the first `limit` that match, by number in
    /// this direction. Rows with the same number are in the order of lane, sink and id.
    ///
    /// # Errors
    /// Errors of the database.
    async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked>;

    /// Looks at the next `rows` dead letters or delivered messages by the time when they ended, and then by number, and
    /// returns the first `limit` that match. It starts with the row `from`, which is included. Other tables have no such
    /// time: they are empty here.
    ///
    /// # Errors
    /// Errors of the database.
    async fn look_ended(
        &self,
        table: ListTable,
        filter: &Filter,
        from: Option<EndedAt>,
        direction: Direction,
        rows: usize,
        limit: usize,
    ) -> Result<LookedEnded>;

    /// The first messages that match, by number, oldest first. It looks at all rows: a list for people is read in bounded
    /// steps, with [`look`](OperateStore::look).
    ///
    /// # Errors
    /// Errors of the database.
    async fn list(&self, filter: &Filter, limit: usize) -> Result<Listing> {
        let mut messages = Vec::new();
        for table in ListTable::ALL {
            let most = limit.saturating_add(1);
            let looked = self
                .look(table, filter, 0..=i64::MAX, Direction::OldestFirst, most)
                .await?;
            messages.extend(looked.messages);
        }
        messages.sort_by(|one, other| list_order(one).cmp(&list_order(other)));
        let more = messages.len() > limit;
        messages.truncate(limit);
        Ok(Listing { messages, more })
    }

    /// All deliveries of one message.
    ///
    /// # Errors
    /// Errors of the database; an unknown id gives an empty list.
    async fn find(&self, id: Uuid) -> Result<Vec<Stored>>;

    /// The counts of the outbox.
    ///
    /// # Errors
    /// Errors of the database.
    async fn summary(&self) -> Result<Summary>;

    /// The time by the database's clock.
    ///
    /// # Errors
    /// Errors of the database.
    async fn now(&self) -> Result<SystemTime>;

    /// Retries up to `limit` dead letters that match, the first of each lane first: due now; attempts reset to 0; in
    /// their original order per key. A dead letter that was never routed is routed again, and one that has expired
    /// loses its expiry. Returns how many.
    ///
    /// With `until`, only letters that were dead by [then](OperateStore::now): a command that retries all of them,
    /// batch by batch, does not retry those again that die again meanwhile.
    ///
    /// # Errors
    /// Errors of the database.
    async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64>;

    /// How many deliveries match, and messages that are not routed yet: as many as [`list`](OperateStore::list) has.
    ///
    /// # Errors
    /// Errors of the database.
    async fn count(&self, filter: &Filter) -> Result<u64> {
        let _ = filter;
        Err(unsupported("counting by a filter"))
    }

    /// Makes up to `limit` waiting deliveries that match due now, in the order of lane, number and sink: those that
    /// failed, are parked, or are deferred because their sink is down, and scheduled ones if `how` includes them.
    /// Blocked messages stay blocked, so that the order is kept. Messages that are already due are not changed, unless
    /// they are reset. It starts after the row `after`, so that a message that fails again meanwhile is not processed
    /// twice.
    ///
    /// # Errors
    /// Errors of the database.
    async fn retry_waiting(
        &self,
        filter: &Filter,
        how: RetryOptions,
        after: Option<&RowRef>,
        limit: usize,
        command: &mut Command,
    ) -> Result<RetriedBatch> {
        let _ = (filter, how, after, limit, command);
        Err(unsupported("making messages due"))
    }

    /// How many deliveries [`retry_waiting`](OperateStore::retry_waiting) would make due or reset.
    ///
    /// # Errors
    /// Errors of the database.
    async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        let _ = (filter, how);
        Err(unsupported("counting what can be made due"))
    }

    /// Deletes up to `limit` dead letters that match, oldest first. The followers that they blocked continue.
    /// `until` is as for [`OperateStore::retry_dead`]. Returns how many.
    ///
    /// # Errors
    /// Errors of the database.
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

    /// Keys with blocked messages, those with the most first.
    ///
    /// # Errors
    /// Errors of the database.
    async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        let _ = limit;
        Err(unsupported("listing keys"))
    }

    /// Releases a key: its dead letters stay dead and no longer block, and its followers become due. `sink` limits it
    /// to one sink. Returns how many dead letters blocked it.
    ///
    /// # Errors
    /// Errors of the database.
    async fn release_key(&self, key: &str, sink: Option<&str>, who: &str) -> Result<u64> {
        let _ = (key, sink, who);
        Err(unsupported("releasing keys"))
    }

    /// The routes of relays with a valid lease, as they published them. A store that does not keep them has none.
    ///
    /// # Errors
    /// Errors of the database.
    async fn published_routes(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// All lanes, with their relays and the number of their ready messages.
    ///
    /// # Errors
    /// Errors of the database.
    async fn lane_views(&self) -> Result<Vec<LaneView>> {
        Err(unsupported("listing lanes"))
    }

    /// The outbox at a glance, at little cost whatever its size: it counts no table in full.
    ///
    /// # Errors
    /// Errors of the database.
    async fn overview(&self) -> Result<Overview> {
        Err(unsupported("an overview"))
    }

    /// Pauses a topic or a sink. Returns whether it was not paused before.
    ///
    /// # Errors
    /// Errors of the database.
    async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        let _ = (what, who);
        Err(unsupported("pausing"))
    }

    /// Ends a pause. Returns whether there was one.
    ///
    /// # Errors
    /// Errors of the database.
    async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let _ = (what, who);
        Err(unsupported("resuming"))
    }

    /// What is paused, since when and by whom.
    ///
    /// # Errors
    /// Errors of the database.
    async fn pauses(&self) -> Result<Vec<PauseView>> {
        Err(unsupported("listing pauses"))
    }

    /// Frees the lanes of relays whose lease has run out, and the jobs whose lease ran out at least `stale_after` ago,
    /// as [`RelayStore::evict`](super::RelayStore::evict) and [`WorkStore::reap`](super::WorkStore::reap) do.
    ///
    /// # Errors
    /// Errors of the database.
    async fn reap_gone(&self, stale_after: std::time::Duration, who: &str) -> Result<Reaped> {
        let _ = (stale_after, who);
        Err(unsupported("reaping"))
    }

    /// How many rows are past the retention, and how many rows of these kinds there are. May be slow: it counts every
    /// row.
    ///
    /// # Errors
    /// Errors of the database.
    async fn clean_count(&self, retention: &Retention) -> Result<CleanCount> {
        let _ = retention;
        Err(unsupported("counting what is old"))
    }

    /// Deletes some rows that are past the retention: up to `limit` rows, or a whole day of delivered messages in a
    /// store that partitions them by day.
    ///
    /// # Errors
    /// Errors of the database.
    async fn clean_up(&self, retention: &Retention, limit: usize, command: &mut Command) -> Result<Cleaned> {
        let _ = (retention, limit, command);
        Err(unsupported("cleaning up"))
    }

    /// The audit rows, newest first.
    ///
    /// # Errors
    /// Errors of the database.
    async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        let _ = limit;
        Err(unsupported("the audit"))
    }
}

pub(super) fn unsupported(what: &str) -> crate::Error {
    crate::Error::new(
        crate::ErrorKind::Unsupported,
        format!("this store does not support {what}"),
    )
}

/// A key with blocked messages.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyView {
    /// The key.
    pub key: String,
    /// The sink.
    pub sink: String,
    /// Its lane.
    pub lane: i64,
    /// Deliveries that are blocked behind the first.
    pub blocked: u64,
    /// The message that blocks them.
    pub head: Option<Uuid>,
    /// Its state: `retry`, `deferred` or `dead`.
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
    /// How often it changed its owner.
    pub epoch: i64,
    /// The relay that holds it.
    pub owner: Option<Uuid>,
    /// The name of that relay.
    pub relay: Option<String>,
    /// The end of its lease, unless it is renewed.
    pub until: Option<SystemTime>,
    /// Consecutive crashes of its owners.
    pub crashes: i64,
    /// Ready messages in it.
    pub ready: u64,
}

/// What can be paused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pausable {
    /// A topic: its messages wait.
    Topic(String),
    /// A sink: it gets no messages.
    Sink(String),
}

impl Pausable {
    /// Its kind (`topic` or `sink`) and its name.
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

/// How old rows must be to be deleted; `None` keeps them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Delivered messages, by when they were delivered.
    pub delivered: Option<std::time::Duration>,
    /// Dead letters, by when they died. Those that block a key are kept.
    pub dead: Option<std::time::Duration>,
    /// Whether to delete idempotency keys whose window has ended.
    pub dedup: bool,
    /// Inbox records, by when the message was handled.
    pub inbox: Option<std::time::Duration>,
}

impl Retention {
    /// The request, as JSON for the audit.
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

/// An action of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditView {
    /// When.
    pub at: SystemTime,
    /// Who it was, as the database knows them: the login. `None` where it has none.
    pub login: Option<String>,
    /// Who, as they call themselves.
    pub who: String,
    /// What.
    pub action: String,
    /// On which messages, as JSON.
    pub filter: String,
    /// How many.
    pub affected: u64,
}
