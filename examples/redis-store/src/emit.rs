//! Room: emit. A transaction gathers messages, and commands of the application, until it commits: then all of it is one
//! call of the script.

use std::time::Duration;

use async_trait::async_trait;
use sendoff::emit::{Dialect, OutboxTx, Param, Statement};
use sendoff::store::{EmitStore, EmitTransaction};
use sendoff::{BoxError, Emitted, Error, ErrorKind, Message, Result, Uuid};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::content::Content;
use crate::{RedisStore, micros};

/// How long an open transaction keeps an idempotency key to itself; whoever vanishes with one gives it back so.
const RESERVATION: Duration = Duration::from_secs(60);
/// How long to wait for a transaction that has it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The marker of this adapter; always inferred.
#[derive(Debug)]
pub struct RedisAdapter;

/// An open transaction. Nothing of it is in Redis until it commits, but for the idempotency keys that it has reserved;
/// dropping it rolls it back.
pub struct RedisTransaction {
    store: RedisStore,
    id: Uuid,
    /// When it began, by the server's clock.
    began: i64,
    messages: Vec<(Content, Option<i64>)>,
    commands: Vec<Vec<Vec<u8>>>,
    /// The reserved idempotency keys.
    onces: Vec<String>,
}

impl RedisStore {
    /// Begins a transaction to emit in with [`sendoff::Outbox::emit`].
    ///
    /// # Errors
    /// [`ErrorKind::Unreachable`] and what else Redis says.
    pub async fn transaction(&self) -> Result<RedisTransaction> {
        let began: i64 = self.script.call("now", &json!({})).await?;
        Ok(RedisTransaction {
            store: self.clone(),
            id: Uuid::new_v4(),
            began,
            messages: Vec::new(),
            commands: Vec::new(),
            onces: Vec::new(),
        })
    }
}

impl RedisTransaction {
    /// Adds a command of the application: it is carried out at the commit, with the messages or not at all. Redis undoes
    /// nothing, so when a later command is refused those before it stay, while no message leaves.
    pub fn command<W: Into<Vec<u8>>>(&mut self, words: impl IntoIterator<Item = W>) {
        self.commands.push(words.into_iter().map(Into::into).collect());
    }

    /// The id that holds the idempotency key of a message; `None` when the message may be written.
    async fn reserve(&mut self, content: &Content) -> Result<Option<Uuid>> {
        let Some(once) = once(content) else { return Ok(None) };
        let args = json!({
            "once": once, "tx": self.id, "id": content.id, "patience": i64::try_from(RESERVATION.as_millis()).unwrap_or(i64::MAX),
        });
        let began = Instant::now();
        loop {
            let answer: String = self.store.script.call("reserve", &args).await?;
            match answer.as_str() {
                "" => {
                    self.onces.push(once);
                    return Ok(None);
                }
                "wait" if began.elapsed() < PATIENCE => sleep(Duration::from_millis(5)).await,
                "wait" => {
                    return Err(
                        Error::new(ErrorKind::Busy, "another transaction holds the idempotency key")
                            .because("it is still open")
                            .next_step("roll back and emit again"),
                    );
                }
                holder => {
                    return holder.parse().map(Some).map_err(|error| {
                        Error::new(
                            ErrorKind::Backend,
                            "an idempotency key is held by something that is no id",
                        )
                        .because("another program wrote it")
                        .next_step("look at the keys of the outbox")
                        .with_source(error)
                    });
                }
            }
        }
    }

    async fn unreserve(store: RedisStore, id: Uuid, onces: Vec<String>) -> Result<()> {
        if onces.is_empty() {
            return Ok(());
        }
        store.script.call("unreserve", &json!({"tx": id, "onces": onces})).await
    }
}

impl Drop for RedisTransaction {
    fn drop(&mut self) {
        let onces = std::mem::take(&mut self.onces);
        // Outside a runtime the keys come back by themselves, a little later.
        if let (false, Ok(runtime)) = (onces.is_empty(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(Self::unreserve(self.store.clone(), self.id, onces));
        }
    }
}

#[async_trait]
impl EmitStore for RedisStore {
    async fn begin(&self) -> Result<Box<dyn EmitTransaction>> {
        Ok(Box::new(self.transaction().await?))
    }
}

#[async_trait]
impl EmitTransaction for RedisTransaction {
    async fn emit(&mut self, messages: &[Message]) -> Result<Vec<Emitted>> {
        let outbox = self.store.outbox().clone();
        outbox.emit_many(self, messages.to_vec()).await
    }

    async fn commit(mut self: Box<Self>) -> Result<()> {
        let mut bytes: Vec<Vec<u8>> = Vec::new();
        let mut number = |some: Vec<u8>| {
            bytes.push(some);
            bytes.len() - 1
        };
        let mut messages = Vec::with_capacity(self.messages.len());
        for (content, due) in &self.messages {
            let text = serde_json::to_vec(content)
                .map_err(|error| Error::new(ErrorKind::Invalid, "the message cannot be written").with_source(error))?;
            let mut row = json!({"id": content.id, "priority": content.priority, "content": number(text)});
            for (name, value) in [("key", content.key.clone()), ("once", once(content))] {
                if let Some(value) = value {
                    row[name] = value.into();
                }
            }
            if let Some(due) = due {
                row["due"] = (*due).into();
            }
            messages.push(row);
        }
        let commands: Vec<Vec<usize>> = std::mem::take(&mut self.commands)
            .into_iter()
            .map(|words| words.into_iter().map(&mut number).collect())
            .collect();
        let window = i64::try_from(self.store.window.as_millis()).unwrap_or(i64::MAX).max(1);
        let args = json!({
            "tx": self.id, "fresh": Uuid::new_v4(), "onces": self.onces, "window": window, "messages": messages, "commands": commands,
        });
        let committed: Result<()> = self.store.script.call_with("commit", &args, &bytes).await;
        if committed.is_ok() {
            self.onces.clear();
        }
        committed
    }

    async fn rollback(mut self: Box<Self>) -> Result<()> {
        let onces = std::mem::take(&mut self.onces);
        Self::unreserve(self.store.clone(), self.id, onces).await
    }
}

/// Emitting with [`sendoff::Outbox`]. Its statements are made for SQL; their values are all that is looked at here.
impl OutboxTx<RedisAdapter> for &mut RedisTransaction {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn run(&mut self, statement: &Statement<'_>) -> Result<Vec<Uuid>, BoxError> {
        let mut ids = Vec::new();
        for (content, due) in contents(statement.params(), self.began)? {
            let holder = self.reserve(&content).await?;
            ids.push(holder.unwrap_or(content.id));
            if holder.is_none() {
                self.messages.push((content, due));
            }
        }
        Ok(if statement.returns_ids() { ids } else { Vec::new() })
    }
}

/// A topic and an idempotency key as one text. The length tells where the one ends.
fn once(content: &Content) -> Option<String> {
    let key = content.idempotency_key.as_ref()?;
    Some(format!("{}:{}{key}", content.topic.len(), content.topic))
}

/// The messages of a statement, and when those are due that have to wait: its fifteen values in the order of its
/// placeholders, each one or an array.
fn contents(columns: &[Param<'_>], now: i64) -> Result<Vec<(Content, Option<i64>)>, BoxError> {
    let count = match columns.first() {
        Some(Param::Uuids(ids)) => ids.len(),
        _ => 1,
    };
    (0..count).map(|row| content(columns, row, now)).collect()
}

fn content(columns: &[Param<'_>], row: usize, now: i64) -> Result<(Content, Option<i64>), BoxError> {
    let other = |column: usize| BoxError::from(format!("value {} of the emit statement has another type", column + 1));
    let text = |column: usize| match columns.get(column) {
        Some(Param::Text(value)) => Ok(value.as_deref().map(str::to_owned)),
        Some(Param::Texts(values)) => Ok(values[row].as_deref().map(str::to_owned)),
        _ => Err(other(column)),
    };
    let int = |column: usize| match columns.get(column) {
        Some(Param::Int(value)) => Ok(*value),
        Some(Param::Ints(values)) => Ok(values[row]),
        _ => Err(other(column)),
    };
    let available_at = int(10)?.or(int(11)?.map(|delay| now.saturating_add(delay.min(micros(Duration::MAX)))));
    let content = Content {
        id: match columns.first() {
            Some(Param::Uuid(id)) => *id,
            Some(Param::Uuids(ids)) => ids[row],
            _ => return Err(other(0)),
        },
        topic: text(1)?.unwrap_or_default(),
        payload: match columns.get(2) {
            Some(Param::Bytes(bytes)) => bytes.to_vec(),
            Some(Param::Blobs(blobs)) => blobs[row].to_vec(),
            _ => return Err(other(2)),
        },
        content_type: text(3)?,
        headers: text(4)?,
        key: text(5)?,
        aggregate_type: text(6)?,
        aggregate_id: text(7)?,
        schema_version: int(8)?.map(i32::try_from).transpose()?,
        idempotency_key: text(9)?,
        expires_at: int(12)?,
        priority: int(13)?.unwrap_or_default().try_into()?,
        max_attempts: int(14)?.map(u32::try_from).transpose()?,
        created_at: now,
    };
    Ok((content, available_at.filter(|at| *at > now)))
}
