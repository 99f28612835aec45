//! `EmitStore`. A transaction collects messages and commands of the application. The commit sends all of them in one call
//! of the script.

use std::time::Duration;

use async_trait::async_trait;
use sendoff::emit::{Dialect, OutboxTx, Statement};
use sendoff::store::{EmitStore, EmitTransaction};
use sendoff::{BoxError, Emitted, Error, ErrorKind, Message, Result, Uuid};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::RedisStore;
use crate::content::{Content, contents};

/// How long an open transaction reserves an idempotency key. After that the key of a vanished transaction is free.
const RESERVATION: Duration = Duration::from_secs(60);
/// How long to wait for another transaction that has reserved the key.
const PATIENCE: Duration = Duration::from_secs(5);

/// The marker type of this adapter; always inferred.
#[derive(Debug)]
pub struct RedisAdapter;

/// An open transaction. Until it commits, Redis only has the idempotency keys that it has reserved. Dropping it rolls
/// it back.
pub struct RedisTransaction {
    store: RedisStore,
    id: Uuid,
    /// When it started, by the server's clock.
    began: i64,
    messages: Vec<(Content, Option<i64>)>,
    commands: Vec<Vec<Vec<u8>>>,
    /// The reserved idempotency keys.
    onces: Vec<String>,
}

impl RedisStore {
    /// Starts a transaction for [`sendoff::Outbox::emit`].
    ///
    /// # Errors
    /// [`ErrorKind::Unreachable`], and other errors of Redis.
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
    /// Adds a command of the application. It runs at the commit, together with the messages. Redis has no rollback: if
    /// a later command is refused, earlier ones stay applied, and no message is written.
    pub fn command<W: Into<Vec<u8>>>(&mut self, words: impl IntoIterator<Item = W>) {
        self.commands.push(words.into_iter().map(Into::into).collect());
    }

    /// The id of the message that has this idempotency key; `None` if the message can be written.
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
                        Error::new(ErrorKind::Busy, "another transaction has reserved the idempotency key")
                            .because("it is still open")
                            .next_step("roll back and emit again"),
                    );
                }
                holder => {
                    return holder.parse().map(Some).map_err(|error| {
                        Error::new(
                            ErrorKind::Backend,
                            "the stored value of an idempotency key is not an id",
                        )
                        .because("another program wrote it")
                        .next_step("check the outbox's keys in Redis")
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
        // Outside a runtime the reservations expire a little later.
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
        outbox.emit_many(self, messages.to_vec()).await.map(Into::into)
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
                .map_err(|error| Error::new(ErrorKind::Invalid, "the message cannot be encoded").with_source(error))?;
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

/// Emitting with [`sendoff::Outbox`]. Its statements are for SQL; this adapter uses only their values.
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

/// A topic and an idempotency key as one text. The length marks the end of the topic.
fn once(content: &Content) -> Option<String> {
    let key = content.idempotency_key.as_ref()?;
    Some(format!("{}:{}{key}", content.topic.len(), content.topic))
}
