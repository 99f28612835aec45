//! Part: operate.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sendoff::store::{
    Action, AuditView, CleanCount, Cleaned, Command, Direction, EndedAt, Filter, KeyView, LISTED_BYTES, LaneView,
    ListTable, Looked, LookedEnded, OperateStore, Overview, Pausable, PauseView, Reaped, Retention, RetriedBatch,
    RetryOptions, RetryState, RowRef, SHOWN_BYTES, Status, Stored, Summary,
};
use sendoff::{Result, Uuid};

use super::clock::{Micros, rfc3339, time};
use super::content::Content;
use super::tables::{Dead, DeliveryAt, Tables, Tried, UNROUTED, WaitState, Waiting};
use super::{MemoryStore, Verb};

#[async_trait]
impl OperateStore for MemoryStore {
    async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>> {
        self.call(Verb::Operate, |tables, _| {
            let numbers = tables.all().filter(|stored| table.has(stored)).map(|stored| stored.seq);
            match direction {
                Direction::NewestFirst => numbers.filter(|seq| *seq <= from).max(),
                Direction::OldestFirst => numbers.filter(|seq| *seq >= from).min(),
            }
        })
        .await
    }

    async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked> {
        self.call(Verb::Operate, |tables, _| {
            let rows = tables.all().filter(|stored| table.has(stored));
            let mut looked = Looked::among(rows, &numbers, |stored| filter.fits(stored), direction, limit);
            cut(&mut looked.messages);
            looked
        })
        .await
    }

    async fn look_ended(
        &self,
        table: ListTable,
        filter: &Filter,
        from: Option<EndedAt>,
        direction: Direction,
        rows: usize,
        limit: usize,
    ) -> Result<LookedEnded> {
        self.call(Verb::Operate, |tables, _| {
            let all = tables.all().filter(|stored| table.has(stored));
            let mut looked = LookedEnded::among(all, from, |stored| filter.fits(stored), direction, rows, limit);
            cut(&mut looked.messages);
            looked
        })
        .await
    }

    async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        self.call(Verb::Operate, |tables, _| {
            let deliveries = tables.all().filter(|stored| stored.id == Some(id));
            deliveries.map(|stored| stored.cut(SHOWN_BYTES)).collect()
        })
        .await
    }

    async fn summary(&self) -> Result<Summary> {
        self.call(Verb::Operate, |tables, now| {
            let age = |created: Option<Micros>| {
                created.map(|at| Duration::from_micros(u64::try_from(now - at).unwrap_or_default()))
            };
            let ready = tables.ready.values().map(|content| content.created_at).min();
            let is_pending = |row: &&Waiting| {
                let is_later = row.state == WaitState::Scheduled && row.due_at.is_some_and(|due| due > now);
                row.attempts == 0 && !is_later
            };
            let pending = tables.waiting.values().filter(is_pending);
            let waiting = pending.map(|row| row.content.created_at).min();
            Summary {
                ready: tables.ready.len() as u64,
                waiting: tables.waiting.len() as u64,
                failed: tables.waiting.values().filter(|row| row.attempts > 0).count() as u64,
                dead: tables.dead.len() as u64,
                delivered: tables.delivered.len() as u64,
                oldest_ready: age(ready),
                oldest_pending: age(ready).max(age(waiting)),
            }
        })
        .await
    }

    async fn now(&self) -> Result<SystemTime> {
        self.call(Verb::Operate, |_, now| time(now)).await
    }

    async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        self.act_in_batches(Action::RetryDead, json(filter), command, |tables, now| {
            tables.retry_dead(filter, until, limit, now)
        })
        .await
    }

    async fn count(&self, filter: &Filter) -> Result<u64> {
        self.call(Verb::Operate, |tables, _| {
            tables.all().filter(|stored| filter.fits(stored)).count() as u64
        })
        .await
    }

    async fn retry_waiting(
        &self,
        filter: &Filter,
        how: RetryOptions,
        after: Option<&RowRef>,
        limit: usize,
        command: &mut Command,
    ) -> Result<RetriedBatch> {
        let mut retried = RetriedBatch::default();
        let asked = how.asked(filter).to_string();
        self.act_in_batches(how.action(), asked, command, |tables, now| {
            retried = tables.retry_waiting(filter, how, after, limit, now);
            retried.due
        })
        .await?;
        Ok(retried)
    }

    async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        self.call(Verb::Operate, |tables, now| {
            tables.to_retry(filter, how, now).count() as u64
        })
        .await
    }

    async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        self.act_in_batches(Action::DiscardDead, json(filter), command, |tables, now| {
            tables.discard_dead(filter, until, limit, now)
        })
        .await
    }

    async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        self.call(Verb::Operate, |tables, _| tables.keys(limit)).await
    }

    async fn release_key(&self, key: &str, sink: Option<&str>, who: &str) -> Result<u64> {
        let asked = serde_json::json!({"key": key, "sink": sink}).to_string();
        self.act(Action::ReleaseKey, asked, who, |tables, now| {
            tables.release_key(key, sink, now)
        })
        .await
    }

    async fn lane_views(&self) -> Result<Vec<LaneView>> {
        self.call(Verb::Operate, |tables, _| tables.lane_views()).await
    }

    async fn overview(&self) -> Result<Overview> {
        self.call(Verb::Operate, |tables, now| tables.overview(now)).await
    }

    async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        let (kind, name) = what.kind_and_name();
        let paused = self.act(
            Action::Pause,
            serde_json::json!({ kind: name }).to_string(),
            who,
            |tables, now| u64::from(tables.pause(what, who, now)),
        );
        Ok(paused.await? > 0)
    }

    async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let (kind, name) = what.kind_and_name();
        let resumed = self.act(
            Action::Resume,
            serde_json::json!({ kind: name }).to_string(),
            who,
            |tables, now| u64::from(tables.resume(what, now)),
        );
        Ok(resumed.await? > 0)
    }

    async fn pauses(&self) -> Result<Vec<PauseView>> {
        self.call(Verb::Operate, |tables, _| {
            let mut pauses: Vec<PauseView> = tables.paused.values().cloned().collect();
            pauses.sort_by_key(|pause| pause.since);
            pauses
        })
        .await
    }

    async fn reap_gone(&self, stale_after: Duration, who: &str) -> Result<Reaped> {
        let asked = serde_json::json!({"stale_after_seconds": stale_after.as_secs_f64()}).to_string();
        let lanes = self.act(Action::Reap, asked, who, super::tables::Tables::evict).await?;
        Ok(Reaped { lanes, jobs: 0 })
    }

    async fn clean_count(&self, retention: &Retention) -> Result<CleanCount> {
        self.call(Verb::Operate, |tables, now| tables.clean_count(retention, now))
            .await
    }

    async fn clean_up(&self, retention: &Retention, limit: usize, command: &mut Command) -> Result<Cleaned> {
        let deleted = self
            .act_in_batches(
                Action::CleanUp,
                retention.asked().to_string(),
                command,
                |tables, now| tables.clean_up(retention, limit, now),
            )
            .await?;
        Ok(Cleaned {
            deleted,
            more: deleted == limit as u64,
        })
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        self.call(Verb::Operate, |tables, _| {
            tables.audits.iter().rev().take(limit).cloned().collect()
        })
        .await
    }
}

impl MemoryStore {
    /// A change, and its row in the audit.
    async fn act(
        &self,
        action: Action,
        filter: String,
        who: &str,
        change: impl FnOnce(&mut Tables, Micros) -> u64,
    ) -> Result<u64> {
        self.act_in_batches(action, filter, &mut Command::by(who), change).await
    }

    /// One batch of a command: the first writes its row of the audit, the others add to it.
    async fn act_in_batches(
        &self,
        action: Action,
        filter: String,
        command: &mut Command,
        change: impl FnOnce(&mut Tables, Micros) -> u64,
    ) -> Result<u64> {
        let (row, who) = (command.row(), command.who().to_owned());
        let (affected, row) = self
            .call(Verb::Operate, |tables, now| {
                let affected = change(tables, now);
                let row = row.and_then(|row| usize::try_from(row).ok());
                if let Some(noted) = row.and_then(|row| tables.audits.get_mut(row)) {
                    noted.affected += affected;
                    return (affected, row.unwrap_or_default());
                }
                tables.audits.push(AuditView {
                    at: time(now),
                    login: None,
                    who,
                    action: action.as_str().to_owned(),
                    filter,
                    affected,
                });
                (affected, tables.audits.len() - 1)
            })
            .await?;
        command.is_noted(row as i64);
        Ok(affected)
    }
}

fn cut(messages: &mut Vec<Stored>) {
    let whole = std::mem::take(messages);
    messages.extend(whole.into_iter().map(|stored| stored.cut(LISTED_BYTES)));
}

fn json(filter: &Filter) -> String {
    serde_json::to_string(filter).unwrap_or_default()
}

impl Tables {
    /// Every delivery, and every message that is not routed yet, with its status.
    pub(super) fn all(&self) -> impl Iterator<Item = Stored> {
        let ready = self.ready.iter().map(|((lane, seq), content)| {
            let at = (*lane, *seq, Arc::from(UNROUTED), content.id);
            stored(Status::Pending, &at, content)
        });
        let waiting = self.waiting.iter().map(|(at, row)| waiting_row(at, row));
        let dead = self.dead.iter().map(|(at, row)| dead_row(at, row));
        let delivered = self.delivered.iter().map(|kept| Stored {
            attempts: i64::from(kept.attempts),
            history: Some(history(&kept.history)),
            ended_at: Some(time(kept.delivered_at)),
            ..stored(Status::Delivered, &kept.at, &kept.content)
        });
        ready.chain(waiting).chain(dead).chain(delivered)
    }
}

pub(super) fn waiting_row(at: &DeliveryAt, row: &Waiting) -> Stored {
    let status = match row.state {
        WaitState::Scheduled => Status::Scheduled,
        WaitState::Tried(RetryState::Deferred) => Status::Deferred,
        WaitState::Blocked if row.due_at.is_none() => Status::Blocked,
        _ if row.attempts == 0 => Status::Pending,
        _ => Status::Retry,
    };
    Stored {
        attempts: i64::from(row.attempts),
        last_error: row.last_error.clone(),
        detail: Some(row.state.as_str().to_owned()),
        history: Some(history(&row.history)),
        due_at: row.due_at.map(time),
        ..stored(status, at, &row.content)
    }
}

pub(super) fn dead_row(at: &DeliveryAt, row: &Dead) -> Stored {
    Stored {
        attempts: i64::from(row.attempts),
        last_error: row.last_error.clone(),
        detail: Some(row.reason.as_str().to_owned()),
        history: Some(history(&row.history)),
        ended_at: Some(time(row.dead_at)),
        ..stored(Status::Dead, at, &row.content)
    }
}

fn stored(status: Status, (lane, seq, sink, _): &DeliveryAt, content: &Content) -> Stored {
    Stored {
        status,
        id: Some(content.id),
        topic: content.topic.clone(),
        sink: sink.to_string(),
        key: content.key.clone(),
        lane: i64::from(*lane),
        seq: *seq,
        aggregate_type: content.aggregate_type.clone(),
        aggregate_id: content.aggregate_id.clone(),
        schema_version: content.schema_version.map(i64::from),
        idempotency_key: content.idempotency_key.clone(),
        content_type: content.content_type.clone(),
        headers: content.headers.to_json(),
        headers_cut: false,
        payload: content.payload.to_vec(),
        payload_bytes: content.payload.len() as u64,
        priority: i64::from(content.priority),
        attempts: 0,
        max_attempts: content.max_attempts.map(i64::from),
        last_error: None,
        detail: None,
        history: None,
        created_at: time(content.created_at),
        due_at: None,
        expires_at: content.expires_at.map(time),
        ended_at: None,
    }
}

fn history(tries: &[Tried]) -> String {
    let entry =
        |tried: &Tried| serde_json::json!({"at": rfc3339(tried.at), "sink": &*tried.sink, "error": tried.error});
    serde_json::Value::from_iter(tries.iter().map(entry)).to_string()
}
