//! What a store does for operators.

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

/// What operators need from a store. Every change is one transaction, which also writes an audit row: who made the
/// change, the name of its [`Action`](super::Action), the request, and the number of changed rows.
#[async_trait]
pub trait OperateStore: Send + Sync {
    /// The first number in a table at or after `from` in this direction; `None` at the end. Numbers are the order of
    /// lists: a message keeps its number in every table.
    ///
    /// # Errors
    /// Errors of the database.
    async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>>;

    /// Reads the rows of a table whose numbers are in `numbers`, and returns the first `limit` rows that match, by
    /// number in this direction. Rows with the same number are in the order of lane, sink and id.
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

    /// Reads the next `rows` dead letters or delivered messages by the time when they ended, and then by number, and
    /// returns the first `limit` that match. It starts with the row `from`, which is included. Other tables have no
    /// such time and give no rows.
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

    /// The first messages that match, by number, oldest first. It reads all rows. A list for people is read in bounded
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

    /// Counts the messages and deliveries of the outbox by state.
    ///
    /// # Errors
    /// Errors of the database.
    async fn summary(&self) -> Result<Summary>;

    /// The time of the database's clock.
    ///
    /// # Errors
    /// Errors of the database.
    async fn now(&self) -> Result<SystemTime>;

    /// Retries up to `limit` dead letters that match, the first of each lane first: due now; attempts reset to 0; in
    /// their original order per key. A dead letter that was never routed is routed again, and one that has expired
    /// loses its expiry. Returns the number of retried dead letters.
    ///
    /// With `until`, only dead letters that died before [that time](OperateStore::now) are retried. So a command that
    /// retries all of them in batches does not retry those that die again in the meantime.
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

    /// The number of deliveries that match, and of messages that match and are not routed yet: the same rows as in
    /// [`list`](OperateStore::list).
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
    /// they are reset. It starts after the row `after`, so that a message that fails again in the meantime is not
    /// processed twice.
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

    /// The number of deliveries that [`retry_waiting`](OperateStore::retry_waiting) would make due or reset.
    ///
    /// # Errors
    /// Errors of the database.
    async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        let _ = (filter, how);
        Err(unsupported("counting what can be made due"))
    }

    /// Deletes up to `limit` dead letters that match, oldest first. Messages that they blocked become due. `until` has
    /// the same meaning as in [`OperateStore::retry_dead`]. Returns the number of deleted dead letters.
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

    /// Keys with blocked messages, those with the most blocked messages first.
    ///
    /// # Errors
    /// Errors of the database.
    async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        let _ = limit;
        Err(unsupported("listing keys"))
    }

    /// Releases a key: its dead letters stay dead and no longer block, and the messages behind them become due. `sink`
    /// limits this to one sink. Returns how many dead letters blocked the key.
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

    /// All lanes, with the relay that holds each lane and the number of ready messages in it.
    ///
    /// # Errors
    /// Errors of the database.
    async fn lane_views(&self) -> Result<Vec<LaneView>> {
        Err(unsupported("listing lanes"))
    }

    /// An overview of the outbox. It is cheap whatever the size of the outbox: it counts no table in full.
    ///
    /// # Errors
    /// Errors of the database.
    async fn overview(&self) -> Result<Overview> {
        Err(unsupported("an overview"))
    }

    /// Pauses a topic or a sink. Returns false if it was already paused.
    ///
    /// # Errors
    /// Errors of the database.
    async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        let _ = (what, who);
        Err(unsupported("pausing"))
    }

    /// Ends a pause. Returns false if there was none.
    ///
    /// # Errors
    /// Errors of the database.
    async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let _ = (what, who);
        Err(unsupported("resuming"))
    }

    /// All pauses, with their start and the operator who began them.
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

    /// Counts the rows that are past the retention, and all rows of these kinds. It may be slow: it counts every row.
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
    /// The blocked key.
    pub key: String,
    /// The sink at which the key is blocked.
    pub sink: String,
    /// The lane of the key.
    pub lane: i64,
    /// The number of deliveries that are blocked behind the first one.
    pub blocked: u64,
    /// The id of the message that blocks the others.
    pub head: Option<Uuid>,
    /// The state of the message that blocks the others: `retry`, `deferred` or `dead`.
    pub state: String,
    /// When the message that blocks the others is tried again.
    pub due_at: Option<SystemTime>,
    /// The last error of the message that blocks the others.
    pub last_error: Option<String>,
}

/// A lane and the relay that holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneView {
    /// The number of the lane.
    pub lane: i64,
    /// How often the lane changed its owner.
    pub epoch: i64,
    /// The id of the relay that holds the lane.
    pub owner: Option<Uuid>,
    /// The name of the relay that holds the lane.
    pub relay: Option<String>,
    /// When the lease on the lane ends, unless it is renewed.
    pub until: Option<SystemTime>,
    /// How many owners of the lane crashed in a row.
    pub crashes: i64,
    /// The number of ready messages in the lane.
    pub ready: u64,
}

/// What can be paused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pausable {
    /// A topic: its messages are not delivered while it is paused.
    Topic(String),
    /// A sink: it gets no messages while it is paused.
    Sink(String),
}

impl Pausable {
    /// The kind (`topic` or `sink`), and the name.
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
    /// The topic or sink that is paused.
    pub what: Pausable,
    /// When the pause began.
    pub since: SystemTime,
    /// The operator who began the pause.
    pub by: String,
}

/// How old rows must be to be deleted; `None` keeps them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// How long delivered messages are kept, from their delivery.
    pub delivered: Option<std::time::Duration>,
    /// How long dead letters are kept, from their death. Those that block a key are kept longer.
    pub dead: Option<std::time::Duration>,
    /// Whether to delete idempotency keys whose deduplication window has ended.
    pub dedup: bool,
    /// How long inbox records are kept, from when the message was handled.
    pub inbox: Option<std::time::Duration>,
}

impl Retention {
    /// The request as JSON, for the audit.
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

/// An audit row: one action of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditView {
    /// When the action took place.
    pub at: SystemTime,
    /// The database login that took the action. `None` if the database has no logins.
    pub login: Option<String>,
    /// The operator, as given by the operator.
    pub who: String,
    /// The name of the action.
    pub action: String,
    /// The filter of the action, as JSON.
    pub filter: String,
    /// How many rows the action changed.
    pub affected: u64,
}
