//! `OperateStore`. Operators are few and commands may be slow: rows are selected here, and changed by one call of the
//! script, which skips rows that are gone by then.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sendoff::store::{
    Action, AuditView, CleanCount, Cleaned, Command, Direction, EndedAt, Filter, KeyView, LISTED_BYTES, Lane, LaneView,
    ListTable, Looked, LookedEnded, OperateStore, Pausable, PauseView, Reaped, Retention, RetriedBatch, RetryOptions,
    RowRef, SHOWN_BYTES, Status, Stored, Summary, TOPIC_IS_PAUSED, Table,
};
use sendoff::{Pattern, Result, Uuid};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::RedisStore;
use crate::content::time;
use crate::rows::{Answer, Found, id_of};

#[async_trait]
impl OperateStore for RedisStore {
    async fn next_number(&self, table: ListTable, from: i64, direction: Direction) -> Result<Option<i64>> {
        let numbers = self.of_table(table).await?.map(|stored| stored.seq);
        Ok(match direction {
            Direction::NewestFirst => numbers.filter(|seq| *seq <= from).max(),
            Direction::OldestFirst => numbers.filter(|seq| *seq >= from).min(),
        })
    }

    async fn look(
        &self,
        table: ListTable,
        filter: &Filter,
        numbers: RangeInclusive<i64>,
        direction: Direction,
        limit: usize,
    ) -> Result<Looked> {
        let rows = self.of_table(table).await?;
        let mut looked = Looked::among(rows, &numbers, |stored| filter.fits(stored), direction, limit);
        cut(&mut looked.messages);
        Ok(looked)
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
        let all = self.of_table(table).await?;
        let mut looked = LookedEnded::among(all, from, |stored| filter.fits(stored), direction, rows, limit);
        cut(&mut looked.messages);
        Ok(looked)
    }

    async fn find(&self, id: Uuid) -> Result<Vec<Stored>> {
        let filter = Filter {
            ids: vec![id],
            ..Filter::default()
        };
        Ok(self
            .fitting(&filter)
            .await?
            .into_iter()
            .map(|found| found.stored.cut(SHOWN_BYTES))
            .collect())
    }

    async fn summary(&self) -> Result<Summary> {
        let (now, rows) = self.all().await?;
        let count = |fits: &dyn Fn(&Found) -> bool| rows.iter().filter(|row| fits(row)).count() as u64;
        let is_ready = |row: &Found| matches!(row.stored.status, Status::Pending) && !row.is_waiting;
        let is_pending = |row: &Found| {
            let is_later = row.stored.detail.as_deref() == Some("scheduled") && row.stored.due_at > Some(now);
            !matches!(row.stored.status, Status::Dead | Status::Delivered) && row.stored.attempts == 0 && !is_later
        };
        let oldest = |fits: &dyn Fn(&Found) -> bool| {
            let created = rows.iter().filter(|row| fits(row)).map(|row| row.stored.created_at);
            created.min().map(|at| now.duration_since(at).unwrap_or_default())
        };
        Ok(Summary {
            ready: count(&is_ready),
            waiting: count(&|row| row.is_waiting),
            failed: count(&|row| row.is_waiting && row.stored.attempts > 0),
            dead: count(&|row| row.stored.status == Status::Dead),
            delivered: count(&|row| row.stored.status == Status::Delivered),
            oldest_ready: oldest(&is_ready),
            oldest_pending: oldest(&is_pending),
        })
    }

    async fn count(&self, filter: &Filter) -> Result<u64> {
        Ok(self.fitting(filter).await?.len() as u64)
    }

    async fn now(&self) -> Result<SystemTime> {
        self.script.call("now", &json!({})).await.map(time)
    }

    async fn retry_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let dead = self.dead(filter, until).await?;
        let mut args = json!({"places": row_refs(dead.iter().take(limit))});
        args["audit"] = audit_batch(Action::RetryDead, json!(filter), command);
        self.call_batch("retry_dead", &args, command).await
    }

    async fn retry_waiting(
        &self,
        filter: &Filter,
        how: RetryOptions,
        after: Option<&RowRef>,
        limit: usize,
        command: &mut Command,
    ) -> Result<RetriedBatch> {
        let (now, mut rows) = self.all().await?;
        rows.retain(|row| can_retry_waiting(row, filter, how, now));
        rows.sort_by_key(waiting_at);
        let behind = |row: &&Found| after.is_none_or(|after| waiting_at(row) > *after);
        let chosen: Vec<&Found> = rows.iter().filter(behind).take(limit).collect();
        let next = chosen.last().filter(|_| chosen.len() == limit);
        let mut args = json!({"places": row_refs(chosen.iter().copied()), "reset": how.reset});
        args["audit"] = audit_batch(how.action(), how.asked(filter), command);
        Ok(RetriedBatch {
            due: self.call_batch("retry_waiting", &args, command).await?,
            next: next.map(|row| waiting_at(row)),
        })
    }

    async fn retry_waiting_count(&self, filter: &Filter, how: RetryOptions) -> Result<u64> {
        let (now, rows) = self.all().await?;
        let wanted = rows.iter().filter(|row| can_retry_waiting(row, filter, how, now));
        Ok(wanted.count() as u64)
    }

    async fn discard_dead(
        &self,
        filter: &Filter,
        until: Option<SystemTime>,
        limit: usize,
        command: &mut Command,
    ) -> Result<u64> {
        let dead = self.dead(filter, until).await?;
        let mut args = json!({"places": row_refs(dead.iter().take(limit))});
        args["audit"] = audit_batch(Action::DiscardDead, json!(filter), command);
        self.call_batch("discard_dead", &args, command).await
    }

    async fn keys(&self, limit: usize) -> Result<Vec<KeyView>> {
        let (_, rows) = self.all().await?;
        let mut held: BTreeMap<(i64, &str, &str), u64> = BTreeMap::new();
        for row in &rows {
            let Some(key) = row.stored.key.as_deref() else { continue };
            let is_held =
                row.is_waiting && row.stored.detail.as_deref() == Some("blocked") && row.stored.due_at.is_none();
            if is_held || row.blocks {
                *held.entry((row.stored.lane, key, &row.stored.sink)).or_default() += u64::from(is_held);
            }
        }
        let mut views: Vec<KeyView> = held
            .into_iter()
            .map(|((lane, key, sink), held)| view(&rows, lane, key, sink, held))
            .collect();
        views.sort_by(|a, b| (b.blocked, &a.key, &a.sink).cmp(&(a.blocked, &b.key, &b.sink)));
        views.truncate(limit);
        Ok(views)
    }

    async fn release_key(&self, key: &str, sink: Option<&str>, who: &str) -> Result<u64> {
        let mut args = json!({"key": key, "audit": audit(Action::ReleaseKey, json!({"key": key, "sink": sink}), who)});
        if let Some(sink) = sink {
            args["sink"] = sink.into();
        }
        self.script.call("release_key", &args).await
    }

    async fn lane_views(&self) -> Result<Vec<LaneView>> {
        type Row = (i64, Option<String>, Option<String>, Option<f64>, i64, u64);
        let lanes: Vec<Row> = self.script.call("lane_views", &json!({})).await?;
        let view = |(lane, (epoch, owner, relay, until, crashes, ready)): (i64, Row)| LaneView {
            lane,
            epoch,
            owner: owner.and_then(|owner| owner.parse().ok()),
            relay,
            until: until.map(|at| time(at as i64)),
            crashes,
            ready,
        };
        Ok((0..).zip(lanes).map(view).collect())
    }

    async fn pause(&self, what: &Pausable, who: &str) -> Result<bool> {
        let (kind, name) = what.kind_and_name();
        let args = json!({
            "what": format!("{kind}:{name}"), "by": who, "audit": audit(Action::Pause, json!({kind: name}), who),
        });
        let paused: u64 = self.script.call("pause", &args).await?;
        Ok(paused > 0)
    }

    async fn resume(&self, what: &Pausable, who: &str) -> Result<bool> {
        let (kind, name) = what.kind_and_name();
        let pattern = match what {
            Pausable::Topic(_) => name.parse::<Pattern>().ok(),
            Pausable::Sink(_) => None,
        };
        let was_stopped = |row: &&Found| {
            row.stored.detail.as_deref() == Some("deferred")
                && row.stored.last_error.as_deref() == Some(TOPIC_IS_PAUSED)
                && pattern
                    .as_ref()
                    .is_some_and(|pattern| pattern.matches(&row.stored.topic))
        };
        let args = json!({
            "what": format!("{kind}:{name}"),
            "audit": audit(Action::Resume, json!({kind: name}), who),
        });
        let resumed: u64 = self.script.call("resume", &args).await?;
        // Looked for when the pause is over: nothing waits for it from then on.
        let (_, rows) = self.all().await?;
        let stopped = row_refs(rows.iter().filter(was_stopped).filter(|_| resumed > 0));
        let _: u64 = self.script.call("wake", &json!({"places": stopped})).await?;
        Ok(resumed > 0)
    }

    async fn pauses(&self) -> Result<Vec<PauseView>> {
        let pauses = self.pauses_by_name().await?.into_iter();
        let mut views: Vec<PauseView> = pauses
            .map(|((kind, name), pause)| PauseView {
                what: if kind == "topic" {
                    Pausable::Topic(name)
                } else {
                    Pausable::Sink(name)
                },
                since: time(pause.since.parse().unwrap_or_default()),
                by: pause.by,
            })
            .collect();
        views.sort_by_key(|pause| pause.since);
        Ok(views)
    }

    async fn reap_gone(&self, stale_after: Duration, who: &str) -> Result<Reaped> {
        let asked = json!({"stale_after_seconds": stale_after.as_secs_f64()});
        let args = json!({"audit": audit(Action::Reap, asked, who)});
        let lanes = self.script.call("reap_gone", &args).await?;
        Ok(Reaped { lanes, jobs: 0 })
    }

    async fn clean_count(&self, retention: &Retention) -> Result<CleanCount> {
        let args = crate::retention(0, retention.delivered, retention.dead);
        let (old, all) = self.script.call("clean_count", &args).await?;
        Ok(CleanCount { old, all })
    }

    async fn clean_up(&self, retention: &Retention, limit: usize, command: &mut Command) -> Result<Cleaned> {
        let mut args = crate::retention(limit, retention.delivered, retention.dead);
        args["audit"] = audit_batch(Action::CleanUp, retention.asked(), command);
        let deleted = self.call_batch("clean_up", &args, command).await?;
        Ok(Cleaned {
            deleted,
            more: deleted == limit as u64,
        })
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditView>> {
        let rows: Vec<String> = self
            .script
            .call("audits", &json!({"limit": limit.clamp(1, 1 << 30)}))
            .await?;
        let read = |row: &String| serde_json::from_str::<Audited>(row).ok();
        let view = |audited: Audited| AuditView {
            at: time(audited.at.parse().unwrap_or_default()),
            login: None,
            who: audited.what.who,
            action: audited.what.action,
            filter: audited.what.filter,
            affected: audited.affected,
        };
        Ok(rows.iter().take(limit).filter_map(read).map(view).collect())
    }
}

/// A stored pause.
#[derive(Deserialize)]
pub(crate) struct Pause {
    since: String,
    by: String,
}

#[derive(Deserialize)]
struct Audited {
    at: String,
    what: Act,
    affected: u64,
}

#[derive(Deserialize)]
struct Act {
    who: String,
    action: String,
    filter: String,
}

impl RedisStore {
    /// Calls a verb for one batch of a command. The verb returns how many rows it changed, and the audit row.
    async fn call_batch(&self, verb: &str, args: &Value, command: &mut Command) -> Result<u64> {
        let (affected, row) = self.script.call(verb, args).await?;
        command.is_noted(row);
        Ok(affected)
    }

    /// The pauses, by kind and name.
    pub(crate) async fn pauses_by_name(&self) -> Result<Vec<((String, String), Pause)>> {
        let pauses: Vec<(String, String)> = self.script.call("pauses", &json!({})).await?;
        let read = |(what, pause): (String, String)| {
            let (kind, name) = what.split_once(':')?;
            let pause = serde_json::from_str(&pause).ok()?;
            Some(((kind.to_owned(), name.to_owned()), pause))
        };
        Ok(pauses.into_iter().filter_map(read).collect())
    }

    /// The server's time, and every row, by lane and number.
    async fn all(&self) -> Result<(SystemTime, Vec<Found>)> {
        let (now, rows): (i64, Vec<Answer>) = self.script.call("all", &json!({})).await?;
        Ok((time(now), rows.into_iter().map(Found::of).collect()))
    }

    async fn of_table(&self, table: ListTable) -> Result<impl Iterator<Item = Stored> + use<>> {
        let (_, rows) = self.all().await?;
        let rows = rows.into_iter().map(|found| found.stored);
        Ok(rows.filter(move |stored| table.has(stored)))
    }

    async fn fitting(&self, filter: &Filter) -> Result<Vec<Found>> {
        let (_, mut rows) = self.all().await?;
        rows.retain(|row| filter.fits(&row.stored));
        Ok(rows)
    }

    async fn dead(&self, filter: &Filter, until: Option<SystemTime>) -> Result<Vec<Found>> {
        let mut rows = self.fitting(filter).await?;
        let died_by_then = |row: &Found| until.is_none_or(|until| row.stored.ended_at.is_some_and(|at| at <= until));
        rows.retain(|row| row.stored.status == Status::Dead && died_by_then(row));
        Ok(rows)
    }
}

/// A key with its blocking row: a dead letter, or else the first row with a due time.
fn view(rows: &[Found], lane: i64, key: &str, sink: &str, held: u64) -> KeyView {
    let of_key = || {
        rows.iter().filter(move |row| {
            let same_delivery = row.stored.sink == sink || row.stored.sink.is_empty();
            row.stored.lane == lane && row.stored.key.as_deref() == Some(key) && same_delivery
        })
    };
    let blocks = |row: &&Found| matches!(row.stored.detail.as_deref(), Some("blocked" | "retry" | "deferred"));
    let dead = of_key().find(|row| row.blocks);
    let waiting = || of_key().find(|row| row.is_waiting && blocks(row) && row.stored.due_at.is_some());
    let head = dead.or_else(waiting).map(|row| &row.stored);
    let state = match head {
        None => "blocked",
        Some(head) if head.status == Status::Dead => "dead",
        Some(head) => head.detail.as_deref().unwrap_or_default(),
    };
    KeyView {
        key: key.to_owned(),
        sink: sink.to_owned(),
        lane,
        blocked: held,
        head: head.and_then(|head| head.id),
        state: state.to_owned(),
        due_at: head.and_then(|head| head.due_at),
        last_error: head.and_then(|head| head.last_error.clone()),
    }
}

fn cut(messages: &mut Vec<Stored>) {
    let whole = std::mem::take(messages);
    messages.extend(whole.into_iter().map(|stored| stored.cut(LISTED_BYTES)));
}

fn row_refs<'a>(rows: impl Iterator<Item = &'a Found>) -> Vec<(i64, &'a str)> {
    rows.map(Found::row_ref).collect()
}

fn audit(action: Action, filter: Value, who: &str) -> Value {
    json!({"action": action.as_str(), "filter": filter.to_string(), "who": who})
}

/// The same for one batch of a command: the first batch writes the audit row, the others add to it.
fn audit_batch(action: Action, filter: Value, command: &Command) -> Value {
    let mut audit = audit(action, filter, command.who());
    if let Some(row) = command.row() {
        audit["row"] = row.into();
    }
    audit
}

fn can_retry_waiting(row: &Found, filter: &Filter, how: RetryOptions, now: SystemTime) -> bool {
    let stored = &row.stored;
    let is_late = stored.due_at.is_some_and(|due| due > now);
    let was_tried = how.reset && (stored.attempts > 0 || stored.last_error.is_some());
    let is_meant = match stored.detail.as_deref() {
        Some("blocked") => false,
        Some("scheduled") => how.scheduled,
        _ => true,
    };
    row.is_waiting && is_meant && (is_late || was_tried) && filter.fits(&row.stored)
}

fn waiting_at(row: &Found) -> RowRef {
    RowRef {
        table: Table::Waiting,
        lane: Lane::try_from(row.stored.lane).unwrap_or_default(),
        seq: row.stored.seq,
        id: id_of(&row.member),
        sink: Some(row.stored.sink.as_str())
            .filter(|sink| !sink.is_empty())
            .map(Into::into),
        locator: 0,
    }
}
